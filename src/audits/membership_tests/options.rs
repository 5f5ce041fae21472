//! The methods of a test, and the resolution of client options for them.

use super::layout::TestKind;
use crate::audits::evidence::{EvidenceOptions, EvidenceRequest, with_default_primary};
use crate::datasets::SampleTotals;
use mia::methods::{AuxiliaryPass, Fault, LabelledMethod, MethodName, Scope, default_methods, inference_methods};

/// Returns totals of labelled samples: a test compares texts of two sorts, as an audit of these does.
fn labelled() -> SampleTotals {
    SampleTotals { members: 1, ..SampleTotals::default() }
}

impl EvidenceOptions {
    /// The methods of a test where none are asked for: the primary one alone; of `di` those that need no other model.
    pub fn default_test_methods(&self, kind: TestKind, scope: &Scope) -> Vec<LabelledMethod> {
        let plain = |name| {
            let methods = default_methods().into_iter();
            methods.filter(|method| method.method.name() == name && method.method.pdr.is_none()).collect()
        };
        match self.control_model(scope, &labelled()) {
            _ if kind == TestKind::Order => plain(MethodName::Loss),
            _ if kind == TestKind::Di => inference_methods(scope),
            Some(reference) => with_default_primary(Vec::new(), Some(&reference)),
            None if scope.has_full_logits() => plain(MethodName::MinKPlusPlus),
            None => plain(MethodName::MinK),
        }
    }

    /// Resolves the options into the basis of the verdict of a test. Faults have pointers into the request. Unless the options name
    /// a control, tests whose texts the owner's own chance has set apart have none. A test that combines all methods has no primary one.
    pub fn settle_test(
        &self,
        kind: TestKind,
        methods: &[LabelledMethod],
        scope: &Scope,
    ) -> Result<EvidenceRequest, Vec<Fault>> {
        if kind == TestKind::Di && self.primary.is_some() {
            return Err(vec![Fault::new("/primary", "a test of kind `di` combines all methods, and none is primary")]);
        }
        let settled = self.settle(methods, scope, &labelled())?;
        let needs_control = self.control.is_some() || !matches!(kind, TestKind::Paired | TestKind::Rank);
        let control = settled.control.filter(|_| needs_control);
        Ok(EvidenceRequest { control, primary: settled.primary.filter(|_| kind != TestKind::Di), ..settled })
    }
}

/// Methods that have no scores in a test, with pointers relative to the list of methods: those that take neighbours, which do not come
/// along. Those that need all texts of an audit are refused where methods are resolved.
pub fn test_method_faults(methods: &[LabelledMethod]) -> Vec<Fault> {
    let takes_neighbors = |method: &&LabelledMethod| {
        method.method.base.passes().iter().any(|(_, pass)| *pass == AuxiliaryPass::Neighbors(None))
    };
    let fault = |method: &LabelledMethod| {
        let detail = format!("`{}` takes a `generator`: the texts of a test come without neighbours", method.label);
        Fault::new(method.pointer("generator"), detail)
    };
    methods.iter().filter(takes_neighbors).map(fault).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audits::fixtures::methods;
    use serde_json::json;

    fn scope(reference: Option<&'static str>) -> Scope<'static> {
        Scope { models: vec!["m", "r", "c"], model: Some("m"), reference, ..Scope::default() }
    }

    fn controlled(control: Option<&str>) -> EvidenceOptions {
        EvidenceOptions { control: Some(control.map(str::to_owned)), ..EvidenceOptions::default() }
    }

    #[test]
    fn by_default_there_is_the_primary_method_alone() {
        let labels = |kind, options: &EvidenceOptions, reference| -> Vec<String> {
            let methods = options.default_test_methods(kind, &scope(reference));
            methods.iter().map(|method| method.label.to_string()).collect()
        };
        let default = EvidenceOptions::default();
        for kind in [TestKind::Dataset, TestKind::Paired, TestKind::Rank] {
            assert_eq!(labels(kind, &default, Some("r")), ["ref(reference=r)"]);
            assert_eq!(labels(kind, &default, None), ["min_k_plus_plus(k=0.2)"]);
        }
        assert_eq!(labels(TestKind::Order, &default, Some("r")), ["loss"]);
        assert_eq!(labels(TestKind::Di, &default, Some("r")).len(), 13);
        assert_eq!(labels(TestKind::Dataset, &controlled(Some("c")), Some("r")), ["ref(reference=c)"]);
        assert_eq!(labels(TestKind::Dataset, &controlled(None), Some("r")), ["min_k_plus_plus(k=0.2)"]);
    }

    #[test]
    fn where_chance_was_the_owners_own_a_control_is_asked_for() {
        let settled = |kind, options: &EvidenceOptions, reference| {
            let scope = scope(reference);
            options.settle_test(kind, &options.default_test_methods(kind, &scope), &scope)
        };
        for (kind, control, primary) in [
            (TestKind::Dataset, Some("r"), "ref(reference=r)"),
            (TestKind::Paired, None, "ref(reference=r)"),
            (TestKind::Order, Some("r"), "loss"),
        ] {
            let settled = settled(kind, &EvidenceOptions::default(), Some("r")).unwrap();
            assert_eq!((settled.control.as_deref(), settled.primary.as_deref()), (control, Some(primary)));
        }
        let asked = settled(TestKind::Rank, &controlled(Some("c")), Some("r")).unwrap();
        assert_eq!(asked.control.as_deref(), Some("c"));
        assert_eq!(settled(TestKind::Dataset, &controlled(Some("m")), None).unwrap_err()[0].pointer, "/control");
        let combined = settled(TestKind::Di, &EvidenceOptions::default(), Some("r")).unwrap();
        assert_eq!((combined.control.as_deref(), combined.primary), (Some("r"), None));
        let named = EvidenceOptions { primary: Some("loss".to_owned()), ..EvidenceOptions::default() };
        assert_eq!(settled(TestKind::Di, &named, None).unwrap_err()[0].pointer, "/primary");
        let unknown = EvidenceOptions { primary: Some("x".to_owned()), ..EvidenceOptions::default() };
        assert_eq!(settled(TestKind::Rank, &unknown, None).unwrap_err()[0].pointer, "/primary");
    }

    #[test]
    fn neighbours_have_to_be_generated() {
        let faults = test_method_faults(&methods(json!(["loss", "neighbor"]), &scope(None)));
        assert_eq!(faults.iter().map(|fault| &*fault.pointer).collect::<Vec<_>>(), ["/1/generator"]);
        let generated = json!([{ "name": "neighbor", "generator": { "model": "c" } }]);
        assert!(test_method_faults(&methods(generated, &scope(None))).is_empty());
    }
}
