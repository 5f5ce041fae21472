//! The rules by which documents, canaries or shards show something (`docs/api.md`). Pure.

use super::document::{TestReason, UnitControl, UnitVerdict};
use super::layout::UnitKind;
use super::measure::{EffectMeasure, Measured};
use crate::audits::evidence::{
    Design, LEVEL, VerdictModel, VerdictState, common_assumptions, first_words, stated_p_value,
};
use crate::pool::ModelInfo;
use std::sync::Arc;

/// The verdict on documents, canaries or shards. `committed` is true if the test is the one that was committed to, and `None`
/// without a commitment.
pub fn unit_verdict(
    kind: UnitKind,
    model: &ModelInfo,
    primary: &Arc<str>,
    measured: &Measured,
    committed: Option<bool>,
    control: Option<UnitControl>,
) -> UnitVerdict {
    let (state, reason) = judge(kind, measured, committed, control.as_ref());
    let p_value = match (&control, measured.p_value) {
        (Some(control), Some(p_value)) => control.p_value_beyond.map(|beyond| beyond.max(p_value)),
        (_, p_value) => p_value,
    };
    let UnitTerms { design, hypothesis, assumptions, .. } = terms(kind);
    let assumptions = assumptions.iter().copied().chain(common_assumptions(control.is_some(), committed == Some(true)));
    let mut verdict = UnitVerdict {
        state,
        reason,
        design,
        kind,
        hypothesis: hypothesis.to_owned(),
        level: LEVEL,
        primary: Arc::clone(primary),
        model: VerdictModel::from(model),
        tested: measured.tested,
        p_value,
        smallest_p_value: measured.smallest_p_value,
        effect: measured.effect,
        assumptions: assumptions.map(str::to_owned).collect(),
        control,
        committed,
        could_have_found: measured.could_have_found,
        sentence: String::new(),
    };
    verdict.sentence = sentence(&verdict);
    verdict
}

/// The design and the words of a kind of test.
struct UnitTerms {
    design: Design,
    hypothesis: &'static str,
    assumptions: &'static [&'static str],
    /// The claim that a low p-value supports.
    claim: &'static str,
    /// The name of one unit, and of several.
    units: [&'static str; 2],
}

fn terms(kind: UnitKind) -> UnitTerms {
    match kind {
        UnitKind::Paired => UnitTerms {
            design: Design::Randomised,
            hypothesis: "the published text of a document is exchangeable with its private rewrites",
            assumptions: &[
                "which text of a document was published was drawn by chance",
                "its private rewrites were made alike and were in no training data",
                "documents are independent of each other",
            ],
            claim: "published texts score higher than their private rewrites",
            units: ["document", "documents"],
        },
        UnitKind::Rank => UnitTerms {
            design: Design::Randomised,
            hypothesis: "a canary is exchangeable with its twins, so that every rank among them is equally likely",
            assumptions: &[
                "which text of a generator became the canary was drawn by chance",
                "the twins were in no training data",
                "canaries are independent of each other",
            ],
            claim: "canaries score higher among their twins than by chance",
            units: ["canary", "canaries"],
        },
        UnitKind::Order => UnitTerms {
            // No client states that chance made the published order.
            design: Design::Observational,
            hypothesis: "the published order of a shard's items is exchangeable with random orders of them",
            assumptions: &[
                "nothing but chance made the published order of the items",
                "shards are independent of each other",
            ],
            claim: "shards in their published order score higher than in random orders",
            units: ["shard", "shards"],
        },
    }
}

fn judge(
    kind: UnitKind,
    measured: &Measured,
    committed: Option<bool>,
    control: Option<&UnitControl>,
) -> (VerdictState, TestReason) {
    use TestReason as Why;
    use VerdictState::{Association, Evidence, Inconclusive, NoAssociation, NoEvidence};
    let is_randomised = terms(kind).design == Design::Randomised;
    let (positive, negative) = if is_randomised { (Evidence, NoEvidence) } else { (Association, NoAssociation) };
    let is_low = |p_value: Option<f64>| p_value.is_some_and(|p_value| p_value <= LEVEL);
    let is_controlled = |control: &UnitControl| control.p_value_beyond.is_some() && control.p_value_alone.is_some();
    if measured.p_value.is_none() || !control.is_none_or(is_controlled) {
        return (Inconclusive, Why::NotScored);
    }
    if measured.smallest_p_value.is_some_and(|smallest| smallest > LEVEL) {
        return (Inconclusive, Why::NoPower);
    }
    if !is_low(measured.p_value) {
        return (negative, Why::HighPValue);
    }
    if committed == Some(false) {
        return (Inconclusive, Why::CommitmentMismatch);
    }
    match control {
        None => (positive, Why::LowPValue),
        Some(control) if !is_low(control.p_value_beyond) => (negative, Why::NotAboveControl),
        Some(control) if is_low(control.p_value_alone) => (Inconclusive, Why::UnderControlAsWell),
        Some(_) => (positive, Why::AboveControl),
    }
}

/// States the verdict and its reason.
pub fn sentence(verdict: &UnitVerdict) -> String {
    let UnitVerdict { primary, level, kind, tested, .. } = verdict;
    let model = format!("`{}` ({})", verdict.model.id, verdict.model.digest);
    let UnitTerms { claim, units: [one, several], .. } = terms(*kind);
    let units = if *tested == 1 { one } else { several };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audits::fixtures::model;
    use crate::audits::membership_tests::measure::UnitEffect;
    use TestReason as Why;
    use VerdictState::{Association, Evidence, Inconclusive, NoAssociation, NoEvidence};

    struct Case {
        kind: UnitKind,
        p_value: Option<f64>,
        smallest_p_value: Option<f64>,
        committed: Option<bool>,
        /// The p-values beyond the control and under it alone.
        control: Option<(Option<f64>, Option<f64>)>,
    }

    const FOUND: Case =
        Case { kind: UnitKind::Rank, p_value: Some(0.001), smallest_p_value: None, committed: None, control: None };

    fn verdict_of(case: &Case) -> UnitVerdict {
        let measure =
            if case.kind == UnitKind::Rank { EffectMeasure::ShareOfTwins } else { EffectMeasure::MeanDifference };
        let scale = if case.kind == UnitKind::Rank { 1.0 } else { 1e-3 };
        let measured = Measured {
            tested: 12,
            p_value: case.p_value,
            smallest_p_value: case.smallest_p_value,
            effect: case.p_value.map(|p_value| UnitEffect {
                measure,
                value: 0.9 * scale,
                null_value: if case.kind == UnitKind::Rank { 0.5 } else { 0.0 },
                standard_error: Some(0.05 * scale),
                interval: Some([0.75 * scale, scale]),
                p_value,
            }),
            could_have_found: Some(0.7),
            ..Measured::default()
        };
        let control = case.control.map(|(p_value_beyond, p_value_alone)| UnitControl {
            model: "small".to_owned(),
            digest: "sha256:1".to_owned(),
            p_value_beyond,
            p_value_alone,
        });
        unit_verdict(case.kind, &model("m"), &"loss".into(), &measured, case.committed, control)
    }

    #[test]
    fn a_low_p_value_is_evidence_where_chance_was_the_owners_own() {
        let order = UnitKind::Order;
        for (case, expected) in [
            (FOUND, (Evidence, Why::LowPValue)),
            (Case { kind: UnitKind::Paired, p_value: Some(0.01), ..FOUND }, (Evidence, Why::LowPValue)),
            (Case { p_value: Some(0.0101), ..FOUND }, (NoEvidence, Why::HighPValue)),
            (Case { p_value: Some(0.0625), smallest_p_value: Some(0.0625), ..FOUND }, (Inconclusive, Why::NoPower)),
            (Case { p_value: None, ..FOUND }, (Inconclusive, Why::NotScored)),
            (Case { kind: order, ..FOUND }, (Association, Why::LowPValue)),
            (Case { kind: order, p_value: Some(0.1), ..FOUND }, (NoAssociation, Why::HighPValue)),
            (Case { control: Some((Some(0.01), Some(0.02))), ..FOUND }, (Evidence, Why::AboveControl)),
            (Case { control: Some((Some(0.01), Some(0.5))), kind: order, ..FOUND }, (Association, Why::AboveControl)),
            (Case { control: Some((Some(0.011), Some(0.5))), ..FOUND }, (NoEvidence, Why::NotAboveControl)),
            (
                Case { control: Some((Some(0.011), Some(0.5))), kind: order, ..FOUND },
                (NoAssociation, Why::NotAboveControl),
            ),
            (Case { control: Some((None, Some(0.5))), kind: order, ..FOUND }, (Inconclusive, Why::NotScored)),
            (Case { control: Some((Some(0.001), None)), ..FOUND }, (Inconclusive, Why::NotScored)),
            (Case { p_value: Some(0.2), control: Some((None, None)), ..FOUND }, (Inconclusive, Why::NotScored)),
            (Case { control: Some((Some(0.001), Some(0.01))), ..FOUND }, (Inconclusive, Why::UnderControlAsWell)),
            (Case { committed: Some(false), ..FOUND }, (Inconclusive, Why::CommitmentMismatch)),
            (Case { committed: Some(true), ..FOUND }, (Evidence, Why::LowPValue)),
        ] {
            let verdict = verdict_of(&case);
            assert_eq!((verdict.state, verdict.reason), expected);
        }
    }

    #[test]
    fn the_larger_p_value_counts() {
        assert_eq!(verdict_of(&FOUND).p_value, Some(0.001));
        assert_eq!(verdict_of(&Case { control: Some((Some(0.004), None)), ..FOUND }).p_value, Some(0.004));
        assert_eq!(verdict_of(&Case { control: Some((None, None)), ..FOUND }).p_value, None);
    }

    /// Each sentence has the numbers of the fields that it is made of, and none claims more.
    #[test]
    fn sentences_are_made_of_the_fields() {
        let measured: &[&str] =
            &["`loss`", "0.900 where chance gives 0.5, 99 % interval 0.750 to 1.000", "over 12 canaries"];
        let null = terms(UnitKind::Rank).hypothesis;
        for (case, parts) in [
            (FOUND, [measured, &[null, "level 0.01", "share of their twins", "p = 0.001"]].concat()),
            (
                Case { control: Some((Some(0.002), Some(0.4))), ..FOUND },
                [measured, &["beyond the control `small` p = 0.0020, under it alone p = 0.400", null]].concat(),
            ),
            (
                Case { p_value: Some(0.2), ..FOUND },
                [measured, &["p = 0.200", "level 0.01", "0.700 with a power of 80 %"]].concat(),
            ),
            (
                Case { smallest_p_value: Some(0.25), ..FOUND },
                vec!["12 canaries", "p-value below 0.250", "at most 0.01"],
            ),
            (Case { p_value: None, ..FOUND }, vec!["`loss` gives no p-value"]),
            (
                Case { control: Some((Some(0.2), Some(0.5))), ..FOUND },
                [measured, &["by more than under the control", "beyond the control `small` p = 0.200"]].concat(),
            ),
            (
                Case { control: Some((Some(0.002), Some(0.003))), ..FOUND },
                [measured, &["under it alone p = 0.0030", "the texts may be the reason"]].concat(),
            ),
            (Case { committed: Some(false), ..FOUND }, [measured, &["not the one that was committed to"]].concat()),
            (
                Case { kind: UnitKind::Paired, ..FOUND },
                vec![
                    "mean difference 0.000900 where chance gives 0,",
                    "over 12 documents",
                    terms(UnitKind::Paired).hypothesis,
                ],
            ),
            (
                Case { kind: UnitKind::Order, ..FOUND },
                vec!["mean difference", "over 12 shards", terms(UnitKind::Order).hypothesis],
            ),
        ] {
            let UnitVerdict { sentence, state, .. } = verdict_of(&case);
            for part in parts.iter().chain(&["under the model `m` (sha256:m)"]) {
                assert!(sentence.contains(part), "{part} in: {sentence}");
            }
            let is_evidence = matches!(state, Evidence | NoEvidence);
            assert_eq!(sentence.to_lowercase().contains("evidence"), is_evidence, "{sentence}");
            assert!(sentence.ends_with('.') && !sentence.contains("  "), "{sentence}");
            for claim in ["do not explain", "explains it", "explain it", "has not seen"] {
                assert!(!sentence.contains(claim), "{claim} in: {sentence}");
            }
        }
    }
}
