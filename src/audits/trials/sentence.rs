//! The verdict of a test in a sentence that can be read aloud.

use super::basis::{LEVEL, TrialBasis, TrialReason};
use super::kind::TrialKind;
use crate::audits::evidence::VerdictState;

/// What the verdict is, and why.
pub fn sentence(basis: &TrialBasis, state: VerdictState, reasons: &[TrialReason]) -> String {
    let reason = reasons.last().copied().unwrap_or(TrialReason::NotScored);
    let begin = match state {
        VerdictState::Evidence => "Evidence",
        VerdictState::NoEvidence => "No evidence",
        VerdictState::Inconclusive => "Inconclusive",
    };
    format!("{begin}: {}.", explanation(basis, reason))
}

fn explanation(basis: &TrialBasis, reason: TrialReason) -> String {
    let (primary, claim, units) = (basis.primary, claim(basis.kind), units(basis.kind, basis.tested));
    let p_value = basis.p_value.map_or_else(|| "no p-value".to_owned(), |p_value| format!("p = {p_value:.2e}"));
    let result = format!("by `{primary}` {claim} ({p_value}, {} {units})", basis.tested);
    match reason {
        TrialReason::LowPValue => format!("{result}, provided that {}", assumption(basis.kind)),
        TrialReason::HighPValue => format!(
            "by `{primary}` it cannot be said that {claim} ({p_value}, {} {units}; it takes p below {LEVEL})",
            basis.tested
        ),
        TrialReason::NoPower => {
            let smallest = basis.smallest_p_value.unwrap_or(1.0);
            format!(
                "{} {units} with scores of `{primary}` cannot give a p-value below {smallest:.2e}, and a verdict takes one below {LEVEL}",
                basis.tested
            )
        }
        TrialReason::NotScored => format!("there are no scores of `{primary}` that can be compared"),
        TrialReason::CommitmentMismatch => {
            format!("{result}, but the private texts are not those that were committed to")
        }
        TrialReason::AboveControl => format!(
            "{result}, which the texts alone do not explain, provided that what the control was trained on resembles what the model \
             was trained on but for the suspects"
        ),
        TrialReason::NotAboveControl => {
            format!(
                "{result}, but not more than under the control, which has not seen them: the texts alone may explain it"
            )
        }
        TrialReason::ControlUnknown => {
            format!("{result}, but there are too few texts to compare that with the control")
        }
        TrialReason::PlaceboFailed => format!(
            "{result}, but the method also tells groups of held-out texts apart by more than the control does, so that it may come \
             from the texts"
        ),
        TrialReason::WordsAlike => {
            format!("{result}, and their words do not differ, provided that {}", assumption(basis.kind))
        }
        TrialReason::AboveWords => {
            format!("{result}; their words tell them apart to some degree, and the method does so better")
        }
        TrialReason::NotAboveWords => format!(
            "{result}, but the words of the texts tell them apart nearly as well; a control model would tell what the training adds"
        ),
        TrialReason::TotalShift => format!(
            "{result}, but suspects and held-out texts are other kinds of texts, which their words alone tell apart nearly without \
             error; a control model would tell what the training adds"
        ),
        TrialReason::WordsUnknown => {
            format!("{result}, but there are too few texts to see whether their words tell them apart")
        }
    }
}

/// What a low p-value says.
fn claim(kind: TrialKind) -> &'static str {
    match kind {
        TrialKind::Dataset => "the suspects score higher than the held-out texts",
        TrialKind::Paired => "the public texts score higher than their private rewrites",
        TrialKind::Rank => "the canaries score higher among their twins than by chance",
        TrialKind::Order => "the published order of the items scores higher than random orders",
    }
}

/// What is counted.
fn units(kind: TrialKind, count: usize) -> &'static str {
    match (kind, count) {
        (TrialKind::Dataset, 1) => "distinct text",
        (TrialKind::Dataset, _) => "distinct texts",
        (TrialKind::Paired, 1) => "document",
        (TrialKind::Paired, _) => "documents",
        (TrialKind::Rank, 1) => "canary",
        (TrialKind::Rank, _) => "canaries",
        (TrialKind::Order, 1) => "shard",
        (TrialKind::Order, _) => "shards",
    }
}

/// What has to hold for a low p-value to come from the training.
fn assumption(kind: TrialKind) -> &'static str {
    match kind {
        TrialKind::Dataset => "suspects and held-out texts are of the same source, kind and time",
        TrialKind::Paired => {
            "the public text and its private rewrites were made alike, and which was published was drawn"
        }
        TrialKind::Rank => "which of the texts of a generator became the canary was drawn",
        TrialKind::Order => "the items were published in an order that nothing but chance made",
    }
}
