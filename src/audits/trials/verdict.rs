//! From the p-value of the primary method and the controls to a verdict. Pure.

use super::basis::{TextControls, TrialBasis, TrialReason};
use super::kind::TrialKind;
use super::sentence::sentence;
use crate::audits::evidence::{Design, LEVEL, VerdictModel, VerdictState};
use mia::statistics::ComparabilityState;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// What a test shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = TestVerdict)]
pub struct TrialVerdict {
    pub state: VerdictState,
    pub design: Design,
    pub model: VerdictModel,
    /// The p-value of the primary method is compared with it.
    pub level: f64,
    /// That of the primary method; absent where there is nothing to compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// Label of the method that it is about.
    #[schema(value_type = String)]
    pub primary: Arc<str>,
    pub reasons: Vec<TrialReason>,
    /// The same in words.
    pub sentence: String,
}

#[must_use]
pub fn trial_verdict(basis: &TrialBasis) -> TrialVerdict {
    let (state, reasons) = judge(basis);
    TrialVerdict {
        state,
        design: design(basis.kind),
        model: basis.model.clone(),
        level: LEVEL,
        p_value: basis.p_value,
        primary: Arc::clone(basis.primary),
        sentence: sentence(basis, state, &reasons),
        reasons,
    }
}

/// What is known of how a text came to be where it is. The order of items is the owner's draw only where chance made it, which
/// nobody says here.
fn design(kind: TrialKind) -> Design {
    match kind {
        TrialKind::Paired | TrialKind::Rank => Design::Randomised,
        TrialKind::Dataset | TrialKind::Order => Design::Observational,
    }
}

fn judge(basis: &TrialBasis) -> (VerdictState, Vec<TrialReason>) {
    let is_randomised = design(basis.kind) == Design::Randomised;
    let positive = if is_randomised { VerdictState::Evidence } else { VerdictState::Association };
    let negative = if is_randomised { VerdictState::NoEvidence } else { VerdictState::NoAssociation };
    let inconclusive = VerdictState::Inconclusive;
    let Some(p_value) = basis.p_value else { return (inconclusive, vec![TrialReason::NotScored]) };
    if basis.smallest_p_value.is_some_and(|smallest| smallest > LEVEL) {
        return (inconclusive, vec![TrialReason::NoPower]);
    }
    if p_value > LEVEL {
        return (negative, vec![TrialReason::HighPValue]);
    }
    let low = TrialReason::LowPValue;
    if basis.commitment.is_some_and(|commitment| !commitment.matches) {
        return (inconclusive, vec![low, TrialReason::CommitmentMismatch]);
    }
    if basis.beyond_control.is_some_and(|p_value| p_value.is_none_or(|p_value| p_value > LEVEL)) {
        return (negative, vec![low, TrialReason::NotAboveControl]);
    }
    if basis.under_control.is_some_and(|p_value| p_value <= LEVEL) {
        return (inconclusive, vec![low, TrialReason::UnderControlAsWell]);
    }
    match &basis.texts {
        None if basis.beyond_control.is_some() => (positive, vec![low, TrialReason::AboveControl]),
        None => (positive, vec![low]),
        Some(texts) => {
            let (state, reason) = texts.judge();
            (state, vec![low, reason])
        }
    }
}

impl TextControls<'_> {
    /// What a low p-value shows, beside the texts.
    fn judge(&self) -> (VerdictState, TrialReason) {
        use VerdictState::{Association, Inconclusive, NoAssociation};
        let (Some(texts), Some(effect)) = (self.comparability, self.effect) else {
            return (Inconclusive, TrialReason::TooFewToCompare);
        };
        match texts.state {
            ComparabilityState::ListsDiffer => return (Inconclusive, TrialReason::ListsDiffer),
            ComparabilityState::TooFew => return (Inconclusive, TrialReason::TooFewToCompare),
            ComparabilityState::Comparable => {}
        }
        let is_above_control = self.control.and_then(|control| control.p_value).is_some_and(|p_value| p_value <= LEVEL);
        if self.controlled && !is_above_control {
            return (NoAssociation, TrialReason::NotAboveControl);
        }
        if effect.lower_bound <= texts.upper_bound {
            return (Inconclusive, TrialReason::NotAboveDifferences);
        }
        let reason = if self.controlled { TrialReason::AboveControl } else { TrialReason::AboveDifferences };
        (Association, reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audits::evidence::{ControlFindings, Effect};
    use crate::audits::trials::commitment::Commitment;
    use TrialReason as Why;
    use VerdictState::{Association, Evidence, Inconclusive, NoAssociation, NoEvidence};
    use mia::statistics::Comparability;

    fn model() -> VerdictModel {
        VerdictModel { id: "m".to_owned(), digest: "sha256:0".to_owned(), adapter_digest: None }
    }

    fn judged(basis: &TrialBasis) -> (VerdictState, Why) {
        let TrialVerdict { state, reasons, sentence, .. } = trial_verdict(basis);
        let begins = match state {
            Evidence => "Evidence: ",
            NoEvidence => "No evidence: ",
            Association => "Association: ",
            NoAssociation => "No association: ",
            Inconclusive => "Inconclusive: ",
        };
        assert!(sentence.contains("under the model `m` (sha256:0)"), "{sentence}");
        assert!(sentence.starts_with(begins) && sentence.ends_with('.') && !sentence.contains("  "), "{sentence}");
        (state, *reasons.last().unwrap())
    }

    #[test]
    fn a_low_p_value_is_evidence_where_chance_was_the_owners_own() {
        let primary: Arc<str> = "loss".into();
        let model = model();
        let basis = |kind, p_value, smallest_p_value| TrialBasis {
            kind,
            model: &model,
            primary: &primary,
            tested: 12,
            p_value,
            smallest_p_value,
            commitment: None,
            beyond_control: None,
            under_control: None,
            texts: None,
        };
        let paired = |p_value, smallest| judged(&basis(TrialKind::Paired, p_value, smallest));
        assert_eq!(paired(Some(0.01), Some(0.001)), (Evidence, Why::LowPValue));
        assert_eq!(paired(Some(0.0101), None), (NoEvidence, Why::HighPValue));
        assert_eq!(paired(Some(0.0625), Some(0.0625)), (Inconclusive, Why::NoPower));
        assert_eq!(paired(None, None), (Inconclusive, Why::NotScored));
        assert_eq!(judged(&basis(TrialKind::Order, Some(0.001), None)), (Association, Why::LowPValue));
        assert_eq!(judged(&basis(TrialKind::Order, Some(0.1), None)), (NoAssociation, Why::HighPValue));
        for (p_value, expected) in [
            (Some(0.01), (Association, Why::AboveControl)),
            (Some(0.011), (NoAssociation, Why::NotAboveControl)),
            (None, (NoAssociation, Why::NotAboveControl)),
        ] {
            let basis = TrialBasis { beyond_control: Some(p_value), ..basis(TrialKind::Order, Some(0.001), None) };
            assert_eq!(judged(&basis), expected);
            let natural = TrialBasis { beyond_control: Some(Some(0.001)), under_control: Some(0.01), ..basis };
            assert_eq!(judged(&natural), (Inconclusive, Why::UnderControlAsWell));
        }
        for (given, expected) in [("b", (Inconclusive, Why::CommitmentMismatch)), ("a", (Evidence, Why::LowPValue))] {
            let (given, computed) = (given.to_owned(), "a".to_owned());
            let commitment = Commitment { matches: given == computed, given, computed };
            for kind in [TrialKind::Paired, TrialKind::Rank] {
                let basis = TrialBasis { commitment: Some(&commitment), ..basis(kind, Some(0.001), None) };
                assert_eq!(judged(&basis), expected);
            }
        }
    }

    #[test]
    fn two_collected_lists_are_an_association_at_most() {
        let primary: Arc<str> = "loss".into();
        let against = |state, upper_bound, controlled, p_value: Option<f64>| {
            let (auroc, standard_error, margin) = (0.5, 0.04, 0.15);
            let texts = Comparability { state, auroc, standard_error, upper_bound, margin, measures: Vec::new() };
            let control = ControlFindings {
                model: "c".to_owned(),
                auroc: 0.5,
                difference: 0.1,
                standard_error: 0.05,
                interval: None,
                p_value,
                p_value_adjusted: None,
                negative_controls: Vec::new(),
            };
            let effect =
                Effect { auroc: 0.7, standard_error: 0.04, interval: [0.6, 0.8], lower_bound: 0.61, p_value: 0.001 };
            judged(&TrialBasis {
                kind: TrialKind::Dataset,
                model: &model(),
                primary: &primary,
                tested: 50,
                p_value: Some(0.001),
                smallest_p_value: Some(1e-9),
                commitment: None,
                beyond_control: None,
                under_control: None,
                texts: Some(TextControls {
                    comparability: Some(&texts),
                    effect: Some(effect),
                    controlled,
                    control: Some(&control),
                }),
            })
        };
        use ComparabilityState::{Comparable, ListsDiffer, TooFew};
        assert_eq!(against(Comparable, 0.6, true, Some(0.01)), (Association, Why::AboveControl));
        assert_eq!(against(Comparable, 0.6, true, Some(0.02)), (NoAssociation, Why::NotAboveControl));
        assert_eq!(against(Comparable, 0.6, true, None), (NoAssociation, Why::NotAboveControl));
        assert_eq!(against(Comparable, 0.6, false, None), (Association, Why::AboveDifferences));
        assert_eq!(against(Comparable, 0.62, false, None), (Inconclusive, Why::NotAboveDifferences));
        assert_eq!(against(ListsDiffer, 0.7, false, None), (Inconclusive, Why::ListsDiffer));
        assert_eq!(against(TooFew, 0.7, false, None), (Inconclusive, Why::TooFewToCompare));
    }
}
