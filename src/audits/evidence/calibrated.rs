//! The verdict on texts without labels, against known non-members.

use super::basis::{FEWEST_CLUSTERS, VerdictReason};
use super::verdict::{Verdict, VerdictState};
use mia::statistics::Shift;
use std::sync::Arc;

/// The p-value of the dataset test below which it counts.
const LEVEL: f64 = 0.01;

/// What a verdict on texts without labels is based on.
#[derive(Clone, Copy, Debug)]
pub struct CalibratedBasis<'a> {
    /// Label of the primary method.
    pub primary: &'a Arc<str>,
    /// Clusters of texts tested.
    pub tested: usize,
    /// Clusters on the list.
    pub listed: usize,
    /// The false discovery rate of the list.
    pub fdr: Option<f64>,
    /// That the texts score no higher than those of the calibration.
    pub p_value: Option<f64>,
    /// Whether words tell the texts from those of the calibration.
    pub shift: Option<Shift>,
}

/// The verdict of an audit of texts without labels.
#[must_use]
pub fn calibrated_verdict(basis: &CalibratedBasis) -> Verdict {
    let (state, reasons) = judge(basis);
    Verdict { state, primary: Arc::clone(basis.primary), sentence: sentence(basis, state, &reasons), reasons }
}

fn judge(basis: &CalibratedBasis) -> (VerdictState, Vec<VerdictReason>) {
    let low_p = basis.p_value.is_some_and(|p_value| p_value < LEVEL);
    let mut reasons = Vec::new();
    reasons.extend((basis.listed > 0).then_some(VerdictReason::Listed));
    reasons.extend(low_p.then_some(VerdictReason::DatasetTest));
    let Some(_) = basis.p_value else { return (VerdictState::Inconclusive, vec![VerdictReason::NotScored]) };
    if basis.tested < FEWEST_CLUSTERS {
        return (VerdictState::Inconclusive, vec![VerdictReason::NoPower]);
    }
    if reasons.is_empty() {
        return (VerdictState::NoEvidence, vec![VerdictReason::NothingListed]);
    }
    match basis.shift {
        Some(Shift::None) => (VerdictState::Evidence, reasons),
        Some(Shift::Some | Shift::Total) => (VerdictState::Inconclusive, vec![VerdictReason::OtherTexts]),
        None => (VerdictState::Inconclusive, vec![VerdictReason::WordsUnknown]),
    }
}

fn sentence(basis: &CalibratedBasis, state: VerdictState, reasons: &[VerdictReason]) -> String {
    let CalibratedBasis { primary, tested, listed, .. } = basis;
    let list = match basis.fdr {
        Some(fdr) => format!("{listed} of {tested} distinct texts are listed at a false discovery rate of {fdr}"),
        None => format!("{tested} distinct texts were tested"),
    };
    let p_value = basis.p_value.map_or_else(|| "none".to_owned(), |p_value| format!("{p_value:.2e}"));
    let result = format!("{list}, and the p-value of all texts together is {p_value}");
    match (state, reasons.first()) {
        (VerdictState::Evidence, _) => format!(
            "Evidence: by `{primary}` the texts score higher than the known non-members do ({result}), and their words do not \
             differ, provided that the texts would be like the known non-members had the model not been trained on them."
        ),
        (VerdictState::NoEvidence, _) => {
            format!(
                "No evidence: by `{primary}` the texts do not score higher than the known non-members do ({result})."
            )
        }
        (VerdictState::Inconclusive, Some(VerdictReason::NoPower)) => format!(
            "Inconclusive: there are {tested} distinct texts with a score of `{primary}`, and a verdict takes {FEWEST_CLUSTERS}."
        ),
        (VerdictState::Inconclusive, Some(VerdictReason::OtherTexts)) => format!(
            "Inconclusive: by `{primary}` the texts score higher than the known non-members do ({result}), but their words differ \
             as well: the known non-members are other kinds of texts."
        ),
        (VerdictState::Inconclusive, Some(VerdictReason::WordsUnknown)) => format!(
            "Inconclusive: by `{primary}` the texts score higher than the known non-members do ({result}), but the texts of the \
             calibration are not kept, so that it is not known whether their words differ."
        ),
        (VerdictState::Inconclusive, _) => {
            format!("Inconclusive: the calibration has no p-values of `{primary}`, or the texts have no scores of it.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_or_a_low_p_value_is_evidence_unless_the_words_differ() {
        let primary: Arc<str> = "loss".into();
        let basis = |listed, p_value, shift| CalibratedBasis {
            primary: &primary,
            tested: 40,
            listed,
            fdr: Some(0.1),
            p_value,
            shift,
        };
        let judged = |basis: CalibratedBasis| {
            let Verdict { state, reasons, sentence, .. } = calibrated_verdict(&basis);
            assert!(sentence.ends_with('.') && !sentence.contains("  "), "{sentence}");
            (state, reasons[0])
        };
        use VerdictReason as Why;
        use VerdictState::{Evidence, Inconclusive, NoEvidence};
        assert_eq!(judged(basis(3, Some(0.2), Some(Shift::None))), (Evidence, Why::Listed));
        assert_eq!(judged(basis(0, Some(0.009), Some(Shift::None))), (Evidence, Why::DatasetTest));
        assert_eq!(judged(basis(0, Some(0.011), Some(Shift::None))), (NoEvidence, Why::NothingListed));
        assert_eq!(judged(basis(3, Some(0.001), Some(Shift::Some))), (Inconclusive, Why::OtherTexts));
        assert_eq!(judged(basis(3, Some(0.001), None)), (Inconclusive, Why::WordsUnknown));
        assert_eq!(judged(basis(0, None, Some(Shift::None))), (Inconclusive, Why::NotScored));
        let few = CalibratedBasis { tested: 1, ..basis(1, Some(0.05), Some(Shift::None)) };
        assert_eq!(judged(few), (Inconclusive, Why::NoPower));
    }
}
