//! The verdict of a test in a sentence that can be read aloud.

use super::basis::{TrialBasis, TrialReason};
use super::kind::TrialKind;
use crate::audits::evidence::{LEVEL, VerdictModel, VerdictState};

/// What the verdict is, and why.
pub fn sentence(basis: &TrialBasis, state: VerdictState, reasons: &[TrialReason]) -> String {
    let reason = reasons.last().copied().unwrap_or(TrialReason::NotScored);
    let begin = match state {
        VerdictState::Evidence => "Evidence",
        VerdictState::NoEvidence => "No evidence",
        VerdictState::Association => "Association",
        VerdictState::NoAssociation => "No association",
        VerdictState::Inconclusive => "Inconclusive",
    };
    let VerdictModel { id, digest, .. } = basis.model;
    format!("{begin}: under the model `{id}` ({digest}), {}.", explanation(basis, reason))
}

fn explanation(basis: &TrialBasis, reason: TrialReason) -> String {
    let (primary, claim, units) = (basis.primary, claim(basis.kind), units(basis.kind, basis.tested));
    let p_value = basis.p_value.map_or_else(|| "no p-value".to_owned(), |p_value| format!("p = {p_value:.2e}"));
    let result = format!("by `{primary}` {claim} ({p_value}, {} {units})", basis.tested);
    let texts_alone = basis.texts.and_then(|texts| texts.comparability).map_or_else(
        || "a classifier that knows the texts alone".to_owned(),
        |texts| {
            format!(
                "a classifier that knows the texts alone (AUROC {:.3}, upper 95 % bound {:.3})",
                texts.auroc, texts.upper_bound
            )
        },
    );
    let beyond = basis.beyond_control.flatten().or_else(|| basis.texts?.control?.p_value);
    let beyond = beyond.map_or_else(|| "no p-value".to_owned(), |p_value| format!("p = {p_value:.2e}"));
    match reason {
        TrialReason::LowPValue => format!("{result}, provided that {}", assumption(basis.kind)),
        TrialReason::HighPValue => format!(
            "by `{primary}` it cannot be said that {claim} ({p_value}, {} {units}; it takes p of at most {LEVEL})",
            basis.tested
        ),
        TrialReason::NoPower => {
            let smallest = basis.smallest_p_value.unwrap_or(1.0);
            format!(
                "{} {units} with scores of `{primary}` cannot give a p-value below {smallest:.2e}, and a verdict takes one of at most {LEVEL}",
                basis.tested
            )
        }
        TrialReason::NotScored => format!("there are no scores of `{primary}` that can be compared"),
        TrialReason::CommitmentMismatch => {
            format!("{result}, but the test is not the one that was committed to")
        }
        TrialReason::AboveControl if basis.kind == TrialKind::Dataset => format!(
            "{result}, more so than under the control and than {texts_alone}, provided that {}",
            assumption(basis.kind)
        ),
        TrialReason::AboveControl => {
            format!("{result}, more so than under the control ({beyond}), provided that {}", assumption(basis.kind))
        }
        TrialReason::AboveDifferences => {
            format!("{result}, more so than {texts_alone}, provided that {}", assumption(basis.kind))
        }
        TrialReason::UnderControlAsWell => {
            let under =
                basis.under_control.map_or_else(|| "no p-value".to_owned(), |p_value| format!("p = {p_value:.2e}"));
            format!(
                "{result}, but so it is under the control ({under}): if that model was not trained on the texts, the texts explain it"
            )
        }
        TrialReason::NotAboveControl => {
            format!("{result}, but it cannot be said that they do so more than under the control ({beyond})")
        }
        TrialReason::NotAboveDifferences => {
            format!("{result}, but not by more than the lists' differences could explain: {texts_alone}")
        }
        TrialReason::ListsDiffer => {
            format!("{result}, but the lists differ in what can be computed without the model: {texts_alone}")
        }
        TrialReason::TooFewToCompare => {
            format!("{result}, but there are too few texts to show that the lists are comparable")
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
