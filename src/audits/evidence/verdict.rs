//! From what the primary method and its controls found to a verdict. Pure.

use super::basis::{Estimate, FEWEST_CLUSTERS, VerdictBasis, VerdictReason};
use super::placebo::Placebo;
use super::sentence::sentence;
use mia::statistics::Shift;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use strum::Display;
use utoipa::ToSchema;

/// What the audit is evidence of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Verdict {
    pub state: VerdictState,
    /// Label of the method that it is about.
    #[schema(value_type = String)]
    pub primary: Arc<str>,
    pub reasons: Vec<VerdictReason>,
    /// The same in words.
    pub sentence: String,
}

/// What the audit is evidence of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum VerdictState {
    /// The score tells the classes apart by more than what the texts alone explain.
    Evidence,
    /// It does not.
    NoEvidence,
    /// What it finds may come from the texts, or there are too few of them.
    Inconclusive,
}

/// The verdict of an audit of labelled texts.
#[must_use]
pub fn verdict(basis: &VerdictBasis) -> Verdict {
    let (state, reason) = judge(basis);
    Verdict { state, primary: Arc::clone(basis.primary), reasons: vec![reason], sentence: sentence(basis, reason) }
}

fn judge(basis: &VerdictBasis) -> (VerdictState, VerdictReason) {
    use VerdictState::{Evidence, Inconclusive, NoEvidence};
    if basis.clusters.iter().any(|count| *count < FEWEST_CLUSTERS) {
        return (Inconclusive, VerdictReason::NoPower);
    }
    let Some(Estimate { interval: [low, _], .. }) = basis.auroc else {
        return (Inconclusive, VerdictReason::NotScored);
    };
    if let Some(control) = basis.control {
        return match control.lower_bound() {
            None => (Inconclusive, VerdictReason::NotScored),
            Some(_) if !control.placebos.iter().all(Placebo::holds) => (Inconclusive, VerdictReason::PlaceboFailed),
            Some(bound) if bound > 0.0 => (Evidence, VerdictReason::AboveControl),
            Some(_) => (NoEvidence, VerdictReason::NotAboveControl),
        };
    }
    match basis.shift {
        None => (Inconclusive, VerdictReason::WordsUnknown),
        Some(Shift::None) if low > 0.5 => (Evidence, VerdictReason::AboveChance),
        Some(Shift::None) => (NoEvidence, VerdictReason::NotAboveChance),
        Some(Shift::Some)
            if basis.over_words.and_then(|words| words.lower_bound()).is_some_and(|bound| bound > 0.0) =>
        {
            (Evidence, VerdictReason::AboveWords)
        }
        Some(Shift::Some) => (Inconclusive, VerdictReason::NotAboveWords),
        Some(Shift::Total) => (Inconclusive, VerdictReason::TotalShift),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audits::evidence::control::ControlFindings;
    use mia::statistics::PairedDeLong;

    fn control(difference: f64, half: f64, placebos: &[[f64; 2]]) -> ControlFindings {
        let placebo = |interval: &[f64; 2]| Placebo {
            groups: ["a".to_owned(), "b".to_owned()],
            difference: (interval[0] + interval[1]) / 2.0,
            interval: Some(*interval),
        };
        ControlFindings {
            model: "reference".to_owned(),
            auroc: Some(0.5),
            difference,
            standard_error: Some(half / 1.96),
            interval: (half > 0.0).then_some([difference - half, difference + half]),
            placebos: placebos.iter().map(placebo).collect(),
        }
    }

    fn paired(delta: f64, interval: Option<[f64; 2]>) -> PairedDeLong {
        PairedDeLong { delta, standard_error: Some(0.0), interval, p_value: None }
    }

    /// The verdict on 20 clusters of each class with an AUROC of 0.6, of which the interval begins at `low`.
    fn judged(
        low: f64,
        control: Option<&ControlFindings>,
        shift: Option<Shift>,
        over_words: Option<PairedDeLong>,
    ) -> (VerdictState, VerdictReason) {
        let primary: Arc<str> = "loss".into();
        let auroc = Some(Estimate { value: 0.6, interval: [low, 0.68] });
        let basis = VerdictBasis { primary: &primary, clusters: [20, 20], auroc, control, shift, over_words };
        let verdict = verdict(&basis);
        assert!(verdict.sentence.ends_with('.') && verdict.sentence.contains("`loss`"), "{}", verdict.sentence);
        (verdict.state, verdict.reasons[0])
    }

    use VerdictReason as Why;
    use VerdictState::{Evidence, Inconclusive, NoEvidence};

    #[test]
    fn with_a_control_the_difference_decides_whatever_the_words_say() {
        let with = |control: ControlFindings| judged(0.52, Some(&control), Some(Shift::Total), None);
        assert_eq!(with(control(0.1, 0.05, &[])), (Evidence, Why::AboveControl));
        assert_eq!(with(control(0.04, 0.05, &[])), (NoEvidence, Why::NotAboveControl));
        assert_eq!(with(control(0.1, 0.05, &[[-0.1, 0.1], [0.01, 0.1]])), (Inconclusive, Why::PlaceboFailed));
        assert_eq!(with(control(0.1, 0.05, &[[-0.1, 0.1]])), (Evidence, Why::AboveControl));
        // A perfect separation does not vary.
        assert_eq!(with(control(0.5, 0.0, &[])), (Evidence, Why::AboveControl));
        let unknown = ControlFindings { standard_error: None, interval: None, ..control(0.1, 0.05, &[]) };
        assert_eq!(with(unknown), (Inconclusive, Why::NotScored));
    }

    #[test]
    fn without_a_control_the_words_decide() {
        assert_eq!(judged(0.51, None, Some(Shift::None), None), (Evidence, Why::AboveChance));
        assert_eq!(judged(0.5, None, Some(Shift::None), None), (NoEvidence, Why::NotAboveChance));
        let above = Some(paired(0.1, Some([0.01, 0.19])));
        assert_eq!(judged(0.51, None, Some(Shift::Some), above), (Evidence, Why::AboveWords));
        let below = Some(paired(0.1, Some([-0.01, 0.21])));
        assert_eq!(judged(0.51, None, Some(Shift::Some), below), (Inconclusive, Why::NotAboveWords));
        assert_eq!(judged(0.51, None, Some(Shift::Some), Some(paired(0.4, None))), (Evidence, Why::AboveWords));
        assert_eq!(judged(0.51, None, Some(Shift::Some), None), (Inconclusive, Why::NotAboveWords));
        assert_eq!(judged(0.51, None, Some(Shift::Total), above), (Inconclusive, Why::TotalShift));
        assert_eq!(judged(0.51, None, None, None), (Inconclusive, Why::WordsUnknown));
    }

    #[test]
    fn too_few_clusters_and_missing_scores_decide_nothing() {
        let primary: Arc<str> = "loss".into();
        let basis = |clusters, auroc| VerdictBasis {
            primary: &primary,
            clusters,
            auroc,
            control: None,
            shift: Some(Shift::None),
            over_words: None,
        };
        let auroc = Some(Estimate { value: 0.9, interval: [0.8, 1.0] });
        let few = verdict(&basis([100, 19], auroc));
        assert_eq!((few.state, &*few.reasons), (Inconclusive, &[Why::NoPower][..]));
        assert!(few.sentence.contains("100 distinct members and 19 distinct non-members"), "{}", few.sentence);
        assert_eq!(verdict(&basis([20, 20], None)).reasons, [Why::NotScored]);
    }
}
