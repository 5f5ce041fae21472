//! Methods computed under the control model.

use mia::methods::{AuxiliaryPass, LabelledMethod, Method, MethodName, Weighting, control_measures as measures};
use mia::statistics::CONTROL_MEASURES;

/// True if the control model can compute the method as the target does. It cannot for methods that compare with a model
/// themselves, nor for methods tied to the target: by an adapter, or by the entropies of all texts under it. Under another
/// tokenization, positions and counts of tokens differ.
#[must_use]
pub fn is_controllable(method: &LabelledMethod, same_tokenization: bool) -> bool {
    let Method { base, pdr, .. } = &method.method;
    let weighting = pdr.map(|pdr| pdr.weighting);
    let belongs_to_target = base.passes().iter().any(|(_, pass)| match pass {
        AuxiliaryPass::Reference(_) | AuxiliaryPass::ReferenceTokenization(_) | AuxiliaryPass::Tuned(_) => true,
        AuxiliaryPass::Lowercase
        | AuxiliaryPass::Split(_)
        | AuxiliaryPass::Neighbors(_)
        | AuxiliaryPass::Prefixed(_) => false,
    });
    let needs_tokenization = weighting.is_some() || base.name() == MethodName::DcPdd;
    !belongs_to_target && weighting != Some(Weighting::EntropyDataset) && (same_tokenization || !needs_tokenization)
}

/// The methods of the control's own measures of a text, in the order of `TextFacts::control`, under labels that no method of a
/// request has.
#[must_use]
pub fn control_measures() -> [LabelledMethod; CONTROL_MEASURES] {
    measures().map(|method| LabelledMethod { label: format!("{}\u{0}control", method.label).into(), ..method })
}

/// True if the method compares with a model that did not see the text. Its score under the control is that model's `loss`.
#[must_use]
pub fn controls_itself(method: &LabelledMethod) -> bool {
    matches!(method.method.base.name(), MethodName::Ref | MethodName::Wbc | MethodName::Ez)
}
