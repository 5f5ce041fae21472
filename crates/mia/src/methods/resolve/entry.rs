//! One entry of a request's list of methods, and a method that was stored, which is read and checked as an entry is.

use crate::methods::definition::PdrPolicy;
use crate::methods::fault::{Fault, Faults};
use crate::methods::grid::Grid;
use crate::methods::labelled::LabelledMethod;
use crate::methods::method::Method;
use crate::methods::pdr::{Pdr, PdrRequest, Select, Weighting};
use crate::methods::presets::PresetName;
use crate::methods::range::{Fraction, format_number};
use crate::methods::reference::Tokenization;
use crate::methods::registry::{BaseMethod, MethodName};
use crate::methods::request::{MethodObject, all_parameters};
use crate::methods::scope::{Place, Scope};
use crate::methods::value::ParameterValue;
use serde::de::{Error, IgnoredAny};
use serde::{Deserialize, Deserializer};
use std::sync::Arc;

/// One entry of the list, and where its parameters are read.
pub struct RequestEntry<'a> {
    pub object: &'a MethodObject,
    pub place: Place<'a>,
}

impl<'a> RequestEntry<'a> {
    /// `name_alone`: the entry is a name and no object. Without a scope it is a stored method.
    pub fn new(object: &'a MethodObject, pointer: &'a str, name_alone: bool, scope: Option<&'a Scope>) -> Self {
        let given = &object.parameters;
        RequestEntry { object, place: Place { given, entry: pointer, name_alone, scope, sweep: 0 } }
    }

    /// Returns its methods with their labels; empty if there is a fault.
    pub fn methods(&self, faults: &mut Faults) -> Vec<(String, Method)> {
        if self.object.preset.is_some() {
            let methods = self.preset(faults).unwrap_or_default();
            return methods.into_iter().map(|method| (method.label(), method)).collect();
        }
        self.swept(faults).unwrap_or_default()
    }

    /// The methods of an entry that names one. Everything is checked before the first `?`, so that no fault hides another.
    fn swept(&self, faults: &mut Faults) -> Option<Vec<(String, Method)>> {
        if self.object.length.is_some() {
            faults.push(self.place.fault("length", "`length` belongs to a preset"));
        }
        let name = faults.keep(self.name());
        let bases = name.and_then(|name| self.bases(name, faults));
        let truncations = self.truncations(faults);
        let weights = self.weights(name, faults);
        let (bases, truncations, weights) = (bases?, truncations?, weights?);
        let mut methods = Vec::with_capacity(bases.len() * truncations.len() * weights.len());
        for (swept, base) in &bases {
            for &truncate in &truncations {
                let share = truncate.filter(|_| truncations.len() > 1).map(|share| format!("truncate={share}"));
                for &pdr in &weights {
                    let method = Method { base: base.clone(), truncate, pdr };
                    let curve = pdr.filter(|_| weights.len() > 1).and_then(|pdr| pdr.weighting.curve());
                    let alpha = curve.map(|curve| format!("alpha={}", format_number(curve.alpha())));
                    let label = match &self.object.label {
                        None => method.label(),
                        Some(label) => with_parts(label, swept.iter().chain(&share).chain(&alpha)),
                    };
                    methods.push((label, method));
                }
            }
        }
        Some(methods)
    }

    fn name(&self) -> Result<MethodName, Fault> {
        let Some(name) = &self.object.name else {
            return Err(Fault::new(self.place.entry, "missing field `name`, or `preset`"));
        };
        let pointer = self.place.pointer("name");
        if name.parse::<PresetName>().is_ok() {
            let detail = format!("`{name}` is a preset; to ask for it, write {{ \"preset\": \"{name}\", ... }}");
            return Err(Fault::new(pointer, detail));
        }
        MethodName::named(name).map_err(|fault| Fault { pointer, ..fault })
    }

    /// One for each value of `truncate`; one without truncation where none is asked for.
    fn truncations(&self, faults: &mut Faults) -> Option<Vec<Option<Fraction>>> {
        let Some(shares) = &self.object.truncate else { return Some(vec![None]) };
        let share = |share| {
            Fraction::new(share).map(Some).ok_or_else(|| format!("truncate is {share:?}, outside {}", Fraction::RANGE))
        };
        shares.checked(&self.place.pointer("truncate"), faults, share)
    }

    /// The method for each value of the parameter that is swept, with that value as labels write it where there are
    /// several; or the one method.
    fn bases(&self, name: MethodName, faults: &mut Faults) -> Option<Vec<(Option<String>, BaseMethod)>> {
        let (definition, faults_before) = (name.definition(), faults.len());
        let takes = |field: &str| definition.parameters.iter().any(|parameter| parameter.name == field);
        for field in all_parameters().into_iter().map(|parameter| parameter.name) {
            if let Some(value) = self.object.parameters.get(field).filter(|_| !takes(field)) {
                let detail = format!("`{field}` is {value}, but `{name}` takes no such parameter");
                faults.push(self.place.fault(field, detail));
            }
        }
        let sweep = self.object.parameters.iter().find_map(|(field, value)| match value {
            ParameterValue::Grid(grid @ Grid::Many(_)) if takes(field) => Some((field, grid.values())),
            _ => None,
        });
        let (field, values) = sweep.map_or(("", Vec::new()), |(field, values)| (*field, values));
        let base = |index| {
            let swept = values.get(index).filter(|_| values.len() > 1);
            let swept = swept.map(|(value, _)| format!("{field}={}", format_number(*value)));
            Some((swept, name.read(&Place { sweep: index, ..self.place }, faults)?))
        };
        let bases: Vec<_> = (0..values.len().max(1)).filter_map(base).collect();
        (faults.len() == faults_before).then_some(bases)
    }

    /// One for each value of `alpha`; one without weights where none are asked for. `name` is that of the method, if
    /// it has one.
    fn weights(&self, name: Option<MethodName>, faults: &mut Faults) -> Option<Vec<Option<Pdr>>> {
        let Some(request) = &self.object.pdr else { return Some(vec![None]) };
        let (faults_before, pointer) = (faults.len(), self.place.pointer("pdr"));
        if let Some(name) = name {
            self.check_method(name, request, request.named(&pointer).ok(), faults);
        }
        let weights = request.read(&pointer, faults)?;
        (faults.len() == faults_before).then(|| weights.into_iter().map(Some).collect())
    }

    /// Checks that such weights make sense on the method.
    fn check_method(&self, name: MethodName, request: &PdrRequest, weighting: Option<Weighting>, faults: &mut Faults) {
        let (selects, text_alone) = match name.definition().pdr {
            PdrPolicy::Accepted { selects, text_alone, .. } => (selects, text_alone),
            PdrPolicy::Refused(reason) => {
                faults.push(self.place.fault("pdr", format!("`{name}` takes no weights: {reason}")));
                return;
            }
        };
        if request.select == Some(Select::Before) && !selects {
            let detail = format!("`select` is `before`, but `{name}` does not select tokens");
            faults.push(self.place.fault("pdr/select", detail));
        }
        if weighting == Some(Weighting::EntropyDataset) {
            let detail = if self.place.scope.is_some_and(|scope| !scope.audit) {
                "`entropy_dataset` is made of all texts of an audit, and needs one; `entropy_sample` needs the text alone".to_owned()
            } else if !text_alone {
                format!(
                    "`entropy_dataset` belongs to the positions of the audit's texts, and `{name}` weights others too"
                )
            } else {
                return;
            };
            faults.push(self.place.fault("pdr/decay", detail));
        }
    }
}

/// A label that a client gave to several methods, with what tells them apart.
fn with_parts<'p>(label: &str, parts: impl Iterator<Item = &'p String>) -> String {
    let parts: Vec<&str> = parts.map(String::as_str).collect();
    if parts.is_empty() { label.to_owned() } else { format!("{label}({})", parts.join(",")) }
}

/// The fields of a serialised method. `extension` follows from the rest; the note says that the reference model has
/// another tokenization.
#[derive(Deserialize)]
struct StoredMethod {
    label: Arc<str>,
    #[serde(rename = "extension", default)]
    _extension: IgnoredAny,
    note: Option<IgnoredAny>,
    #[serde(flatten)]
    object: MethodObject,
}

impl<'de> Deserialize<'de> for LabelledMethod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let StoredMethod { label, object, note, .. } = StoredMethod::deserialize(deserializer)?;
        let mut faults = Faults::default();
        let mut methods = RequestEntry::new(&object, "", false, None).methods(&mut faults);
        match (methods.pop(), methods.is_empty(), faults.into_vec().first()) {
            (Some((_, mut method)), true, None) => {
                if let (Some(_), BaseMethod::Ref(reference)) = (note, &mut method.base) {
                    reference.tokenization = Tokenization::Separate;
                }
                Ok(LabelledMethod { label, method, origin: None })
            }
            (_, _, Some(fault)) => Err(D::Error::custom(format!("{}: {}", fault.pointer, fault.detail))),
            (_, _, None) => Err(D::Error::custom("a stored method is one method, not several")),
        }
    }
}
