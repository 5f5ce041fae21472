//! Client options for the methods of a test, and their resolution.

use super::layout::TestKind;
use crate::audits::evidence::{EvidenceOptions, EvidenceRequest, SampleFacts, with_default_primary};
use mia::methods::{AuxiliaryPass, Fault, LabelledMethod, MethodName, Scope, default_methods};

/// A test compares texts of two sorts, as an audit of labelled samples does.
const FACTS: SampleFacts = SampleFacts { labelled: true, grouped: false, non_members: 0 };

/// Client options for the methods of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct TestOptions {
    pub kind: TestKind,
    /// Label of a method, or its name.
    pub primary: Option<String>,
    /// Id of the control model, or `None` inside for none; by default the configured reference model, but for tests whose texts the
    /// owner's own chance has set apart.
    pub control: Option<Option<String>>,
}

impl TestOptions {
    /// The methods where none are asked for: the primary one alone.
    pub fn default_methods(&self, scope: &Scope) -> Vec<LabelledMethod> {
        let plain = |name| {
            let methods = default_methods().into_iter();
            methods.filter(|method| method.method.name() == name && method.method.pdr.is_none()).collect()
        };
        match (self.kind, self.evidence().control_model(scope, FACTS)) {
            (TestKind::Order, _) => plain(MethodName::Loss),
            (TestKind::Dataset | TestKind::Paired | TestKind::Rank, Some(reference)) => {
                with_default_primary(Vec::new(), Some(&reference))
            }
            (TestKind::Dataset | TestKind::Paired | TestKind::Rank, None) => plain(match scope.has_full_logits() {
                true => MethodName::MinKPlusPlus,
                false => MethodName::MinK,
            }),
        }
    }

    /// Resolves the options into the basis of the verdict.
    pub fn settle(&self, methods: &[LabelledMethod], scope: &Scope) -> Result<EvidenceRequest, Vec<Fault>> {
        let settled = self.evidence().settle(methods, scope, FACTS)?;
        let needs_control = self.control.is_some() || matches!(self.kind, TestKind::Dataset | TestKind::Order);
        let control = settled.control.filter(|_| needs_control);
        Ok(EvidenceRequest { control, ..settled })
    }

    fn evidence(&self) -> EvidenceOptions {
        let (primary, control) = (self.primary.clone(), self.control.clone());
        EvidenceOptions { primary, control, ..EvidenceOptions::default() }
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

    fn options(kind: TestKind) -> TestOptions {
        TestOptions { kind, primary: None, control: None }
    }

    #[test]
    fn by_default_there_is_the_primary_method_alone() {
        let labels = |options: &TestOptions, reference| -> Vec<String> {
            options.default_methods(&scope(reference)).iter().map(|method| method.label.to_string()).collect()
        };
        for kind in [TestKind::Dataset, TestKind::Paired, TestKind::Rank] {
            assert_eq!(labels(&options(kind), Some("r")), ["ref(reference=r)"]);
            assert_eq!(labels(&options(kind), None), ["min_k_plus_plus(k=0.2)"]);
        }
        assert_eq!(labels(&options(TestKind::Order), Some("r")), ["loss"]);
        let controlled = |control: Option<&str>| TestOptions {
            control: Some(control.map(str::to_owned)),
            ..options(TestKind::Dataset)
        };
        assert_eq!(labels(&controlled(Some("c")), Some("r")), ["ref(reference=c)"]);
        assert_eq!(labels(&controlled(None), Some("r")), ["min_k_plus_plus(k=0.2)"]);
    }

    #[test]
    fn where_chance_was_the_owners_own_a_control_is_asked_for() {
        let control = |kind| {
            let options = options(kind);
            let settled = options.settle(&options.default_methods(&scope(Some("r"))), &scope(Some("r"))).unwrap();
            (settled.control, settled.primary.unwrap().to_string())
        };
        assert_eq!(control(TestKind::Dataset), (Some("r".to_owned()), "ref(reference=r)".to_owned()));
        assert_eq!(control(TestKind::Paired), (None, "ref(reference=r)".to_owned()));
        assert_eq!(control(TestKind::Order), (Some("r".to_owned()), "loss".to_owned()));
        let asked = TestOptions { control: Some(Some("c".to_owned())), ..options(TestKind::Rank) };
        assert_eq!(asked.settle(&default_methods(), &scope(Some("r"))).unwrap().control.as_deref(), Some("c"));
        let itself = TestOptions { control: Some(Some("m".to_owned())), ..options(TestKind::Dataset) };
        assert_eq!(itself.settle(&default_methods(), &scope(None)).unwrap_err()[0].pointer, "/control");
        let unknown = TestOptions { primary: Some("x".to_owned()), ..options(TestKind::Rank) };
        assert_eq!(unknown.settle(&default_methods(), &scope(None)).unwrap_err()[0].pointer, "/primary");
    }

    #[test]
    fn neighbours_have_to_be_generated() {
        let faults = test_method_faults(&methods(json!(["loss", "neighbor"]), &scope(None)));
        assert_eq!(faults.iter().map(|fault| &*fault.pointer).collect::<Vec<_>>(), ["/1/generator"]);
        let generated = json!([{ "name": "neighbor", "generator": { "model": "c" } }]);
        assert!(test_method_faults(&methods(generated, &scope(None))).is_empty());
    }
}
