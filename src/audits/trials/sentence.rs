//! The verdict of a test in a sentence that can be read aloud, made of its fields alone.

use super::basis::TrialReason;
use super::kind::TrialKind;
use super::measure::EffectMeasure;
use super::verdict::UnitVerdict;
use crate::audits::evidence::{first_words, stated_p_value};

/// What the verdict is, and why.
pub fn sentence(verdict: &UnitVerdict) -> String {
    let UnitVerdict { primary, level, kind, tested, .. } = verdict;
    let model = format!("`{}` ({})", verdict.model.id, verdict.model.digest);
    let (claim, units) = (claim(*kind), units(*kind, *tested));
    let effect = verdict.effect.map_or_else(
        || "no effect".to_owned(),
        |effect| {
            let measure = match effect.measure {
                EffectMeasure::MeanDifference => "mean difference",
                EffectMeasure::ShareOfTwins => "mean share of their twins that they score above",
            };
            let interval = effect
                .interval
                .map_or_else(String::new, |[low, high]| format!(", 99 % interval {low:.3} to {high:.3}"));
            let (value, null, p_value) = (effect.value, effect.null_value, stated_p_value(effect.p_value));
            format!("{measure} {value:.3} where chance gives {null}{interval}, p = {p_value} over {tested} {units}")
        },
    );
    let stated = |p_value: Option<f64>| p_value.map_or_else(|| "none".to_owned(), stated_p_value);
    let control = verdict.control.as_ref().map_or_else(String::new, |control| {
        let (beyond, alone) = (stated(control.p_value_beyond), stated(control.p_value_alone));
        format!("; beyond the control `{}` p = {beyond}, under it alone p = {alone}", control.model)
    });
    let result = format!("{effect}{control}");
    let power = verdict.could_have_found.map_or_else(String::new, |effect| {
        format!("; so many {units} show an effect from {effect:.3} with a power of 80 %")
    });
    let rest = match verdict.reason {
        TrialReason::LowPValue | TrialReason::AboveControl => format!(
            "by `{primary}` {claim} ({result}), at level {level} against the null hypothesis that {}",
            verdict.hypothesis
        ),
        TrialReason::HighPValue => {
            format!("by `{primary}` it is not shown at level {level} that {claim} ({result}){power}")
        }
        TrialReason::NoPower => format!(
            "{tested} {units} with scores of `{primary}` cannot give a p-value below {}, and a verdict takes one of at most {level}",
            stated(verdict.smallest_p_value)
        ),
        TrialReason::NotScored => format!("there are no scores of `{primary}` that can be compared"),
        TrialReason::CommitmentMismatch => {
            format!("by `{primary}` {claim} ({result}), but the test is not the one that was committed to")
        }
        TrialReason::UnderControlAsWell => format!(
            "by `{primary}` {claim} ({result}), but at level {level} so they do under the control: the texts may be the reason"
        ),
        TrialReason::NotAboveControl => format!(
            "by `{primary}` {claim}, but it is not shown at level {level} that they do so by more than under the control \
             ({result}){power}"
        ),
    };
    format!("{}: under the model {model}, {rest}.", first_words(verdict.state))
}

/// What a low p-value says.
fn claim(kind: TrialKind) -> &'static str {
    match kind {
        TrialKind::Dataset => "suspects score higher than held-out texts",
        TrialKind::Paired => "published texts score higher than their private rewrites",
        TrialKind::Rank => "canaries score higher among their twins than by chance",
        TrialKind::Order => "shards in their published order score higher than in random orders",
    }
}

/// What is counted.
fn units(kind: TrialKind, count: usize) -> &'static str {
    match (kind, count) {
        (TrialKind::Dataset, 1) => "cluster",
        (TrialKind::Dataset, _) => "clusters",
        (TrialKind::Paired, 1) => "document",
        (TrialKind::Paired, _) => "documents",
        (TrialKind::Rank, 1) => "canary",
        (TrialKind::Rank, _) => "canaries",
        (TrialKind::Order, 1) => "shard",
        (TrialKind::Order, _) => "shards",
    }
}
