//! The verdict of a test in a sentence that can be read aloud, made of its fields alone.

use super::basis::TestReason;
use super::kind::UnitKind;
use super::measure::EffectMeasure;
use super::verdict::UnitVerdict;
use crate::audits::evidence::{first_words, stated_p_value};

/// States the verdict and its reason.
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
                .map_or_else(String::new, |[low, high]| format!(", 99 % interval {} to {}", number(low), number(high)));
            let (value, null, p_value) = (number(effect.value), effect.null_value, stated_p_value(effect.p_value));
            format!("{measure} {value} where chance gives {null}{interval}, p = {p_value} over {tested} {units}")
        },
    );
    let stated = |p_value: Option<f64>| p_value.map_or_else(|| "none".to_owned(), stated_p_value);
    let control = verdict.control.as_ref().map_or_else(String::new, |control| {
        let (beyond, alone) = (stated(control.p_value_beyond), stated(control.p_value_alone));
        format!("; beyond the control `{}` p = {beyond}, under it alone p = {alone}", control.model)
    });
    let result = format!("{effect}{control}");
    let power = verdict.could_have_found.map_or_else(String::new, |effect| {
        format!("; this many {units} show an effect from {} with a power of 80 %", number(effect))
    });
    let rest = match verdict.reason {
        TestReason::LowPValue | TestReason::AboveControl => format!(
            "by `{primary}` {claim} ({result}), at level {level} against the null hypothesis that {}",
            verdict.hypothesis
        ),
        TestReason::HighPValue => {
            format!("by `{primary}` it is not shown at level {level} that {claim} ({result}){power}")
        }
        TestReason::NoPower => format!(
            "{tested} {units} with scores of `{primary}` cannot give a p-value below {}, and a verdict takes one of at most {level}",
            stated(verdict.smallest_p_value)
        ),
        TestReason::NotScored => {
            format!(
                "`{primary}` gives no p-value, of the test or beside the control: scores are missing, or canaries have more twins \
                 than an exact p-value is computed for"
            )
        }
        TestReason::CommitmentMismatch => {
            format!("by `{primary}` {claim} ({result}), but the test is not the one that was committed to")
        }
        TestReason::UnderControlAsWell => format!(
            "by `{primary}` {claim} ({result}), but at level {level} they do so under the control as well: the texts may be the reason"
        ),
        TestReason::NotAboveControl => format!(
            "by `{primary}` {claim}, but it is not shown at level {level} that they do so by more than under the control \
             ({result})"
        ),
    };
    format!("{}: under the model {model}, {rest}.", first_words(verdict.state))
}

/// With three decimals, or three significant digits where it is small.
fn number(value: f64) -> String {
    let decimals = if value == 0.0 { 3 } else { (2.0 - value.abs().log10().floor()).clamp(3.0, 12.0) as usize };
    format!("{value:.decimals$}")
}

/// Claim that a low p-value supports.
fn claim(kind: UnitKind) -> &'static str {
    match kind {
        UnitKind::Paired => "published texts score higher than their private rewrites",
        UnitKind::Rank => "canaries score higher among their twins than by chance",
        UnitKind::Order => "shards in their published order score higher than in random orders",
    }
}

/// Name of the counted units, singular or plural.
fn units(kind: UnitKind, count: usize) -> &'static str {
    match (kind, count) {
        (UnitKind::Paired, 1) => "document",
        (UnitKind::Paired, _) => "documents",
        (UnitKind::Rank, 1) => "canary",
        (UnitKind::Rank, _) => "canaries",
        (UnitKind::Order, 1) => "shard",
        (UnitKind::Order, _) => "shards",
    }
}
