//! Client options for the verdict, and their resolution.

use super::request::{
    CalibrationShare, CalibrationSource, ControlDefault, DecisionRequest, EvidenceRequest, StratifyBy, fdr_fault,
    prior_fault, share_fault,
};
use crate::datasets::SampleTotals;
use mia::methods::{BaseMethod, Fault, LabelledMethod, Method, MethodName, Ref, Scope, Tokenization};
use mia::statistics::{CalibrationScores, Procedure};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// Client options for the verdict; none are set by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvidenceOptions {
    /// Label of a method, or its name.
    pub primary: Option<String>,
    /// Id of the control model, or `None` inside for none; by default its base, else the configured reference model.
    pub control: Option<Option<String>>,
    pub stratify: Option<StratifyBy>,
    pub prior: Option<f64>,
    pub calibration: Option<CalibrationSource>,
    pub decisions: Option<DecisionOptions>,
}

/// A list of texts at a false discovery rate, where there is a calibration.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DecisionOptions {
    /// Label or name of the method that decides; the primary method if left out.
    pub method: Option<String>,
    /// The expected share of non-members among the texts listed; 0.1 if left out.
    #[schema(exclusive_minimum = 0.0, maximum = 0.5)]
    pub fdr: Option<f64>,
    /// Procedure that makes the list; `bh` (Benjamini and Hochberg) if left out.
    pub procedure: Option<Procedure>,
}

/// The false discovery rate where none is given.
const DEFAULT_FDR: f64 = 0.1;

/// The share of tokens that `min_k_plus_plus` selects where it is the default.
const DEFAULT_SHARE: f64 = 0.2;

impl EvidenceOptions {
    /// Id of the control model of labelled samples; `None` for samples without labels, where there is nothing to control.
    pub fn control_model(&self, scope: &Scope, totals: &SampleTotals) -> Option<String> {
        let default = || default_control(scope).map(|(control, _)| control.to_owned());
        totals.are_labelled().then(|| self.control.clone().unwrap_or_else(default)).flatten()
    }

    /// Resolves the options into the basis of the verdict. Faults have pointers into the request.
    pub fn settle(
        &self,
        methods: &[LabelledMethod],
        scope: &Scope,
        totals: &SampleTotals,
    ) -> Result<EvidenceRequest, Vec<Fault>> {
        let mut faults = Vec::new();
        if !totals.are_labelled() {
            faults.extend(self.given().into_iter().map(|field| Fault::new(field, "the samples are without labels")));
        }
        if let Some(Some(control)) = &self.control {
            if Some(&**control) == scope.model {
                faults.push(Fault::new("/control", format!("`{control}` is the model that is asked about")));
            } else if !scope.models.contains(&&**control) {
                let known = scope.models.join(", ");
                faults.push(Fault::new("/control", format!("there is no model `{control}`, known are {known}")));
            }
        }
        if self.stratify.is_some() && totals.grouped == 0 {
            faults.push(Fault::new("/stratify", "no sample names a `group`"));
        }
        faults.extend(self.prior.and_then(prior_fault));
        faults.extend(self.calibration_faults(totals));
        // Without methods, these have faults of their own.
        let is_about = (totals.are_labelled() || self.calibration.is_some()) && !methods.is_empty();
        let named = |name: Option<&str>, pointer: &str, faults: &mut Vec<Fault>| {
            let label = is_about.then(|| primary(methods, name))?;
            label.map_err(|detail| faults.push(Fault::new(pointer, detail))).ok()
        };
        let primary = named(self.primary.as_deref(), "/primary", &mut faults);
        let wanted = self.decisions.clone().unwrap_or_default();
        let method = match &wanted.method {
            None => primary.clone(),
            name => named(name.as_deref(), "/decisions/method", &mut faults),
        };
        let control = self.control_model(scope, totals);
        if let Some(control) = control.as_deref().filter(|control| scope.without_logits.contains(control)) {
            let label = |known: &&LabelledMethod| primary.as_ref() == Some(&known.label);
            if methods.iter().find(label).is_some_and(|known| known.method.needs_full_logits()) {
                let detail = format!(
                    "the server of `{control}` gives log-probabilities alone, too little for the primary method"
                );
                faults.push(Fault::new("/control", detail));
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let decision = |method| DecisionRequest {
            method,
            fdr: wanted.fdr.unwrap_or(DEFAULT_FDR),
            procedure: wanted.procedure.unwrap_or_default(),
        };
        Ok(EvidenceRequest {
            primary,
            control_default: default_control(scope)
                .filter(|_| control.is_some() && self.control.is_none())
                .map(|(_, reason)| reason),
            control,
            stratify: self.stratify,
            prior: self.prior,
            decisions: self.calibration.is_some().then_some(method).flatten().map(decision),
            calibration: self.calibration.clone(),
            plan: None,
        })
    }

    fn calibration_faults(&self, totals: &SampleTotals) -> Vec<Fault> {
        let mut faults = Vec::new();
        if let Some(CalibrationSource::Share(CalibrationShare { share, .. })) = &self.calibration {
            faults.extend(share_fault(*share));
            let known = (totals.non_members as f64 * share).round() as usize;
            if !totals.are_labelled() {
                let detail = "the samples are without labels, so none is known to be a non-member";
                faults.push(Fault::new("/calibration/share", detail));
            } else if known < CalibrationScores::FEWEST {
                let detail = format!(
                    "{known} known non-members are too few: p-values take {} at least",
                    CalibrationScores::FEWEST
                );
                faults.push(Fault::new("/calibration/share", detail));
            }
        }
        let Some(decisions) = &self.decisions else { return faults };
        if self.calibration.is_none() {
            faults.push(Fault::new("/decisions", "a list takes a `calibration`"));
        }
        faults.extend(decisions.fdr.and_then(fdr_fault));
        faults
    }

    fn given(&self) -> Vec<&'static str> {
        [
            ("/primary", self.primary.is_some() && self.calibration.is_none()),
            ("/control", matches!(self.control, Some(Some(_)))),
            ("/stratify", self.stratify.is_some()),
            ("/prior", self.prior.is_some()),
        ]
        .into_iter()
        .filter_map(|(field, given)| given.then_some(field))
        .collect()
    }
}

/// The control where none is asked for: the model that the one asked about was tuned from, else its reference model.
fn default_control<'a>(scope: &Scope<'a>) -> Option<(&'a str, ControlDefault)> {
    let base = scope.base.map(|base| (base, ControlDefault::Base));
    let reference = scope.reference.map(|reference| (reference, ControlDefault::Reference));
    [base, reference].into_iter().flatten().find(|(control, _)| Some(*control) != scope.model)
}

/// The label of the method that the verdict is about: the one that is named, by its label or, where it is listed once without
/// weights, by the name of the method. It is settled before anything is scored, so that it cannot be picked by its result. Without a name it is `ref`, else `min_k_plus_plus(k=0.2)`, else the first method.
/// An error says in words that the name is that of none or of several methods.
fn primary(methods: &[LabelledMethod], name: Option<&str>) -> Result<Arc<str>, String> {
    let label = |method: &LabelledMethod| Arc::clone(&method.label);
    let Some(name) = name else {
        let chosen =
            methods.iter().find(|method| is_plain(method, MethodName::Ref)).or_else(|| default_method(methods));
        return chosen.or(methods.first()).map(label).ok_or_else(|| "there are no methods".to_owned());
    };
    if let Some(method) = methods.iter().find(|method| *method.label == *name) {
        return Ok(label(method));
    }
    let named: Vec<&LabelledMethod> = methods
        .iter()
        .filter(|method| method.method.name().to_string() == name && method.method.pdr.is_none())
        .collect();
    match &*named {
        [method] => Ok(label(method)),
        [] => Err(format!("`{name}` is not among the methods; {}", listed(methods))),
        _ => Err(format!("`{name}` names {} of the methods; {}", named.len(), listed(methods))),
    }
}

/// The default methods, with `ref` before them where the control is run anyway: it costs no further forward pass, and the
/// verdict is about it.
pub fn with_default_primary(defaults: Vec<LabelledMethod>, control: Option<&str>) -> Vec<LabelledMethod> {
    let reference = control.map(|id| Ref { reference: id.into(), tokenization: Tokenization::default() });
    let first = reference.map(|reference| LabelledMethod::from(Method::new(BaseMethod::from(reference))));
    first.into_iter().chain(defaults).collect()
}

fn is_plain(method: &LabelledMethod, name: MethodName) -> bool {
    let Method { truncate, pdr, .. } = &method.method;
    method.method.name() == name && truncate.is_none() && pdr.is_none()
}

fn default_method(methods: &[LabelledMethod]) -> Option<&LabelledMethod> {
    let is_default =
        |base: &BaseMethod| matches!(base, BaseMethod::MinKPlusPlus(method) if method.k.get() == DEFAULT_SHARE);
    methods.iter().find(|method| is_plain(method, MethodName::MinKPlusPlus) && is_default(&method.method.base))
}

fn listed(methods: &[LabelledMethod]) -> String {
    let labels: Vec<String> = methods.iter().take(16).map(|method| format!("`{}`", method.label)).collect();
    let more = if methods.len() > labels.len() { ", ..." } else { "" };
    format!("their labels are {}{more}", labels.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audits::fixtures::methods;
    use mia::methods::default_methods;
    use serde_json::{Value, json};

    fn labelled() -> SampleTotals {
        SampleTotals { members: 500, non_members: 500, ..SampleTotals::default() }
    }

    fn scope() -> Scope<'static> {
        Scope { models: vec!["m", "r", "c"], model: Some("m"), reference: Some("r"), ..Scope::default() }
    }

    fn settled(options: &EvidenceOptions, requests: Value) -> EvidenceRequest {
        options.settle(&methods(requests, &scope()), &scope(), &labelled()).unwrap()
    }

    #[test]
    fn by_default_the_reference_is_the_control_and_ref_is_the_primary_method() {
        let options = EvidenceOptions::default();
        let settled = settled(&options, json!(["loss", "min_k_plus_plus", "ref"]));
        assert_eq!(settled.primary.as_deref(), Some("ref(reference=r)"));
        assert_eq!(settled.control.as_deref(), Some("r"));
        let primary = |requests| self::settled(&options, requests).primary.unwrap();
        assert_eq!(&*primary(json!(["loss", "min_k_plus_plus"])), "min_k_plus_plus(k=0.2)");
        assert_eq!(&*primary(json!(["loss", { "name": "min_k_plus_plus", "k": 0.1 }])), "loss");
    }

    #[test]
    fn a_base_is_the_control_before_the_reference() {
        let [base, itself, neither] = [Some("c"), Some("m"), None];
        for (base, control, expected) in [
            (base, None, Some(("c", Some(ControlDefault::Base)))),
            (itself, None, Some(("r", Some(ControlDefault::Reference)))),
            (neither, None, Some(("r", Some(ControlDefault::Reference)))),
            (base, Some(Some("r")), Some(("r", None))),
            (base, Some(Some("c")), Some(("c", None))),
            (base, Some(None), None),
        ] {
            let options = EvidenceOptions {
                control: control.map(|id: Option<&str>| id.map(str::to_owned)),
                ..EvidenceOptions::default()
            };
            let scope = Scope { base, ..scope() };
            let settled = options.settle(&default_methods(), &scope, &labelled()).unwrap();
            let control = settled.control.as_deref().map(|control| (control, settled.control_default));
            assert_eq!(control, expected);
            let unlabelled = options.control_model(&scope, &SampleTotals::default());
            assert_eq!(unlabelled, None);
        }
    }

    #[test]
    fn a_method_is_named_by_its_label_or_its_name() {
        let named = |name: &str, requests| {
            let options = EvidenceOptions { primary: Some(name.to_owned()), ..EvidenceOptions::default() };
            let settled = options.settle(&methods(requests, &scope()), &scope(), &labelled());
            settled.map(|settled| settled.primary.unwrap().to_string()).map_err(|faults| faults[0].clone())
        };
        let list = json!(["min_k", { "name": "min_k", "k": 0.1, "label": "mine" }, { "name": "loss", "pdr": { "decay": "linear", "alpha": 1 } }, "loss"]);
        assert_eq!(named("mine", list.clone()).unwrap(), "mine");
        assert_eq!(named("loss", list.clone()).unwrap(), "loss");
        let fault = named("min_k", list.clone()).unwrap_err();
        assert!(fault.pointer == "/primary" && fault.detail.contains("names 2 of the methods"), "{fault:?}");
        assert!(named("zlib", list).unwrap_err().detail.contains("their labels are `min_k(k=0.2)`, `mine`"));
    }

    #[test]
    fn every_fault_is_named() {
        let fault = |options: EvidenceOptions, totals: &SampleTotals| {
            let faults = options.settle(&default_methods(), &scope(), totals).unwrap_err();
            assert_eq!(faults.len(), 1, "{faults:?}");
            format!("{} {}", faults[0].pointer, faults[0].detail)
        };
        let control = |id: &str| EvidenceOptions { control: Some(Some(id.to_owned())), ..EvidenceOptions::default() };
        let prior = |prior| EvidenceOptions { prior: Some(prior), ..EvidenceOptions::default() };
        let stratify = EvidenceOptions { stratify: Some(StratifyBy::Group), ..EvidenceOptions::default() };
        assert_eq!(fault(control("m"), &labelled()), "/control `m` is the model that is asked about");
        assert_eq!(fault(control("x"), &labelled()), "/control there is no model `x`, known are m, r, c");
        assert_eq!(fault(prior(1.0), &labelled()), "/prior the prior is 1.0, outside (0, 1)");
        assert_eq!(fault(prior(f64::NAN), &labelled()), "/prior the prior is NaN, outside (0, 1)");
        assert_eq!(fault(stratify, &labelled()), "/stratify no sample names a `group`");
        let unlabelled = SampleTotals { grouped: 1, ..SampleTotals::default() };
        assert_eq!(fault(control("c"), &unlabelled), "/control the samples are without labels");
        let nothing = EvidenceOptions { control: Some(None), ..EvidenceOptions::default() };
        assert_eq!(nothing.settle(&default_methods(), &scope(), &unlabelled), Ok(EvidenceRequest::default()));
        assert_eq!(nothing.settle(&default_methods(), &scope(), &labelled()).unwrap().control, None);
        let share = |share| Some(CalibrationSource::Share(CalibrationShare { share, seed: 0 }));
        let drawn = |drawn| EvidenceOptions { calibration: share(drawn), ..EvidenceOptions::default() };
        assert_eq!(fault(drawn(1.0), &labelled()), "/calibration/share the share is 1.0, outside (0, 1)");
        let few = SampleTotals { non_members: 36, ..labelled() };
        assert!(fault(drawn(0.5), &few).contains("18 known non-members are too few"));
        assert!(fault(drawn(0.5), &unlabelled).contains("none is known to be a non-member"));
        let list = |decisions, calibration| EvidenceOptions {
            decisions: Some(decisions),
            calibration,
            ..EvidenceOptions::default()
        };
        let decisions = DecisionOptions { fdr: Some(0.0), ..DecisionOptions::default() };
        let detail = "/decisions/fdr the false discovery rate is 0.0, outside (0, 0.5]";
        assert_eq!(fault(list(decisions, share(0.5)), &labelled()), detail);
        assert_eq!(
            fault(list(DecisionOptions::default(), None), &labelled()),
            "/decisions a list takes a `calibration`"
        );
        let method = DecisionOptions { method: Some("x".to_owned()), ..DecisionOptions::default() };
        assert!(fault(list(method, share(0.5)), &labelled()).starts_with("/decisions/method `x` is not among"));
    }

    #[test]
    fn with_a_calibration_there_is_a_list_unasked() {
        let calibration = Some(CalibrationSource::Stored("id".to_owned()));
        let options = EvidenceOptions { calibration, ..EvidenceOptions::default() };
        let unlabelled = SampleTotals::default();
        let settled = options.settle(&default_methods(), &scope(), &unlabelled).unwrap();
        let expected = DecisionRequest { method: "min_k_plus_plus(k=0.2)".into(), fdr: 0.1, procedure: Procedure::Bh };
        assert_eq!((settled.decisions, settled.control), (Some(expected.clone()), None));
        assert_eq!(settled.primary, Some(expected.method));
    }
}
