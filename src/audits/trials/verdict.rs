//! From the p-value of the primary method and the controls to a verdict. Pure.

use super::basis::{LEVEL, TextControls, TrialBasis, TrialReason};
use super::sentence::sentence;
use crate::audits::evidence::{Placebo, VerdictState};
use mia::statistics::Shift;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// What a test is evidence of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = TestVerdict)]
pub struct TrialVerdict {
    pub state: VerdictState,
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
    TrialVerdict { state, primary: Arc::clone(basis.primary), sentence: sentence(basis, state, &reasons), reasons }
}

fn judge(basis: &TrialBasis) -> (VerdictState, Vec<TrialReason>) {
    use VerdictState::{Evidence, Inconclusive, NoEvidence};
    let Some(p_value) = basis.p_value else { return (Inconclusive, vec![TrialReason::NotScored]) };
    if basis.smallest_p_value.is_some_and(|smallest| smallest >= LEVEL) {
        return (Inconclusive, vec![TrialReason::NoPower]);
    }
    if p_value >= LEVEL {
        return (NoEvidence, vec![TrialReason::HighPValue]);
    }
    let low = TrialReason::LowPValue;
    if basis.commitment.is_some_and(|commitment| !commitment.matches) {
        return (Inconclusive, vec![low, TrialReason::CommitmentMismatch]);
    }
    match &basis.texts {
        None => (Evidence, vec![low]),
        Some(texts) => {
            let (state, reason) = texts.judge();
            (state, vec![low, reason])
        }
    }
}

impl TextControls<'_> {
    /// What a low p-value is evidence of, beside the texts.
    fn judge(&self) -> (VerdictState, TrialReason) {
        use VerdictState::{Evidence, Inconclusive, NoEvidence};
        if let Some(control) = self.control {
            return match control.lower_bound() {
                None => (Inconclusive, TrialReason::ControlUnknown),
                Some(_) if !control.placebos.iter().all(Placebo::holds) => (Inconclusive, TrialReason::PlaceboFailed),
                Some(bound) if bound > 0.0 => (Evidence, TrialReason::AboveControl),
                Some(_) => (NoEvidence, TrialReason::NotAboveControl),
            };
        }
        match self.shift {
            None => (Inconclusive, TrialReason::WordsUnknown),
            Some(Shift::None) => (Evidence, TrialReason::WordsAlike),
            Some(Shift::Some) if self.above_words => (Evidence, TrialReason::AboveWords),
            Some(Shift::Some) => (Inconclusive, TrialReason::NotAboveWords),
            Some(Shift::Total) => (Inconclusive, TrialReason::TotalShift),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audits::evidence::ControlFindings;
    use crate::audits::trials::commitment::Commitment;
    use crate::audits::trials::kind::TrialKind;
    use TrialReason as Why;
    use VerdictState::{Evidence, Inconclusive, NoEvidence};

    fn control(difference: f64, interval: Option<[f64; 2]>) -> ControlFindings {
        ControlFindings {
            model: "c".to_owned(),
            auroc: Some(0.5),
            difference,
            standard_error: interval.map(|[low, high]| (high - low) / 4.0),
            interval,
            placebos: Vec::new(),
        }
    }

    fn judged(basis: &TrialBasis) -> (VerdictState, Why) {
        let TrialVerdict { state, reasons, sentence, .. } = trial_verdict(basis);
        let begins = match state {
            Evidence => "Evidence: ",
            NoEvidence => "No evidence: ",
            Inconclusive => "Inconclusive: ",
        };
        assert!(sentence.starts_with(begins) && sentence.ends_with('.') && !sentence.contains("  "), "{sentence}");
        (state, *reasons.last().unwrap())
    }

    #[test]
    fn a_low_p_value_is_evidence_unless_something_else_explains_it() {
        let primary: Arc<str> = "loss".into();
        let basis = |p_value, smallest_p_value| TrialBasis {
            kind: TrialKind::Paired,
            primary: &primary,
            tested: 12,
            p_value,
            smallest_p_value,
            commitment: None,
            texts: None,
        };
        assert_eq!(judged(&basis(Some(0.009), Some(0.001))), (Evidence, Why::LowPValue));
        assert_eq!(judged(&basis(Some(0.01), None)), (NoEvidence, Why::HighPValue));
        assert_eq!(judged(&basis(Some(0.0625), Some(0.0625))), (Inconclusive, Why::NoPower));
        assert_eq!(judged(&basis(None, None)), (Inconclusive, Why::NotScored));
        for (given, expected) in [("b", (Inconclusive, Why::CommitmentMismatch)), ("a", (Evidence, Why::LowPValue))] {
            let (given, computed) = (given.to_owned(), "a".to_owned());
            let commitment = Commitment { matches: given == computed, given, computed };
            for kind in [TrialKind::Paired, TrialKind::Rank, TrialKind::Order] {
                let basis = TrialBasis { kind, commitment: Some(&commitment), ..basis(Some(0.001), None) };
                assert_eq!(judged(&basis), expected);
            }
        }
    }

    #[test]
    fn suspects_have_controls() {
        let primary: Arc<str> = "loss".into();
        let against = |control: Option<&ControlFindings>, shift, above_words| {
            judged(&TrialBasis {
                kind: TrialKind::Dataset,
                primary: &primary,
                tested: 50,
                p_value: Some(0.001),
                smallest_p_value: Some(1e-9),
                commitment: None,
                texts: Some(TextControls { control, shift, above_words }),
            })
        };
        let total = Some(Shift::Total);
        assert_eq!(against(Some(&control(0.2, Some([0.1, 0.3]))), total, false), (Evidence, Why::AboveControl));
        assert_eq!(against(Some(&control(0.1, Some([-0.1, 0.3]))), None, true), (NoEvidence, Why::NotAboveControl));
        assert_eq!(against(Some(&control(0.1, None)), None, true), (Inconclusive, Why::ControlUnknown));
        let groups = ["a".to_owned(), "b".to_owned()];
        let placebo = Placebo { groups, difference: 0.2, interval: Some([0.1, 0.3]) };
        let failed = ControlFindings { placebos: vec![placebo], ..control(0.2, Some([0.1, 0.3])) };
        assert_eq!(against(Some(&failed), None, true), (Inconclusive, Why::PlaceboFailed));
        assert_eq!(against(None, Some(Shift::None), false), (Evidence, Why::WordsAlike));
        assert_eq!(against(None, Some(Shift::Some), true), (Evidence, Why::AboveWords));
        assert_eq!(against(None, Some(Shift::Some), false), (Inconclusive, Why::NotAboveWords));
        assert_eq!(against(None, total, true), (Inconclusive, Why::TotalShift));
        assert_eq!(against(None, None, true), (Inconclusive, Why::WordsUnknown));
    }
}
