//! The rules by which two lists of texts show something (`docs/verdict.md`). Pure.

use super::comparison::{ControlFindings, Effect};
use super::verdict::{
    Design, FEWEST_CLUSTERS, Verdict, VerdictControl, VerdictModel, VerdictReason, VerdictSplits, VerdictState,
};
use super::{LEVEL, POWER};
use crate::pool::ModelInfo;
use crate::wire::number_of;
use mia::statistics::{Comparability, ComparabilityState, detectable_auroc};
use std::sync::Arc;

/// Basis of a verdict on two lists.
#[derive(Clone, Copy, Debug)]
pub struct VerdictBasis<'a> {
    /// Label of the primary method.
    pub primary: &'a Arc<str>,
    pub model: &'a ModelInfo,
    /// Names of the lists.
    pub lists: [&'static str; 2],
    /// Clusters of each list that have a score.
    pub clusters: [usize; 2],
    pub texts_per_cluster: usize,
    /// `None` unless the effect is over splits.
    pub splits: Option<VerdictSplits>,
    pub effect: Option<Effect>,
    /// The control model, where there is one, with what the method finds beside it.
    pub control: Option<(&'a ModelInfo, Option<&'a ControlFindings>)>,
    pub comparability: Option<&'a Comparability>,
    /// True if the test is the one that was committed to; `None` without a commitment.
    pub committed: Option<bool>,
}

const HYPOTHESIS: &str = "given everything that can be seen of a text without the model, the list that the text is in does \
                          not depend on its score";

/// The verdict on two lists that somebody collected.
pub fn verdict(basis: &VerdictBasis) -> Verdict {
    let (state, reason) = judge(basis);
    let control = basis.control.and_then(|(model, findings)| {
        let findings = findings?;
        Some(VerdictControl {
            model: model.id.clone(),
            digest: model.digest.clone(),
            auroc: findings.auroc,
            difference: findings.difference,
            p_value: findings.p_value,
        })
    });
    let difference = control.as_ref().and_then(|control| control.p_value);
    // Twice the median p-value is at most the level where the median is at most half of it.
    let ([first, second], level) = match basis.splits {
        None => (basis.clusters, LEVEL),
        Some(splits) => (splits.tested, LEVEL / 2.0),
    };
    let mut verdict = Verdict {
        state,
        reason,
        design: Design::Observational,
        hypothesis: HYPOTHESIS.to_owned(),
        level: LEVEL,
        primary: Arc::clone(basis.primary),
        model: VerdictModel::from(basis.model),
        lists: basis.lists.map(str::to_owned),
        clusters: basis.clusters,
        texts_per_cluster: basis.texts_per_cluster,
        splits: basis.splits,
        p_value: basis.effect.map(|effect| difference.map_or(effect.p_value, |p_value| p_value.max(effect.p_value))),
        effect: basis.effect,
        committed: basis.committed,
        assumptions: assumptions(basis, control.is_some()),
        control,
        comparability: basis.comparability.cloned(),
        could_have_found: detectable_auroc(first, second, level, POWER),
        sentence: String::new(),
    };
    verdict.sentence = sentence(&verdict);
    verdict
}

/// The assumptions of any test with a control, and of one that was committed to.
pub fn common_assumptions(controlled: bool, committed: bool) -> impl Iterator<Item = &'static str> {
    let control = "the control was not trained on these texts; if it was, this test finds less or nothing";
    let commitment = "the commitment was deposited before the texts were published";
    [controlled.then_some(control), committed.then_some(commitment)].into_iter().flatten()
}

fn assumptions(basis: &VerdictBasis, controlled: bool) -> Vec<String> {
    let [first, second] = basis.lists;
    let mut all = vec![
        format!("none of the {second} was in the training data"),
        format!(
            "{first} and {second} differ in nothing that changes the score and that none of the measures compared sees"
        ),
        "the texts were not chosen by any model's score".to_owned(),
        "clusters of texts are independent of each other".to_owned(),
    ];
    if basis.splits.is_some() {
        all.push(format!(
            "training on the {first} is what the methods differ by, in whatever direction: learnt weights may be negative"
        ));
    }
    all.extend(common_assumptions(controlled, basis.committed == Some(true)).map(str::to_owned));
    all
}

fn judge(basis: &VerdictBasis) -> (VerdictState, VerdictReason) {
    use VerdictReason as Why;
    use VerdictState::{Association, Inconclusive, NoAssociation};
    if basis.clusters.iter().any(|count| *count < FEWEST_CLUSTERS) {
        return (Inconclusive, Why::TooFew);
    }
    let Some(effect) = basis.effect else { return (Inconclusive, Why::NotScored) };
    let Some(comparability) = basis.comparability else { return (Inconclusive, Why::NotCompared) };
    match comparability.state {
        ComparabilityState::ListsDiffer => return (Inconclusive, Why::ListsDiffer),
        ComparabilityState::TooFew => return (Inconclusive, Why::TooFewToCompare),
        ComparabilityState::Comparable => {}
    }
    // Learnt weights turn scores the right way round.
    if effect.interval[1] < 0.5 && basis.splits.is_none() {
        return (NoAssociation, Why::MembersScoreLower);
    }
    if effect.p_value > LEVEL || effect.auroc <= 0.5 {
        return (NoAssociation, Why::NotAboveChance);
    }
    if let Some((_, findings)) = basis.control {
        match findings.and_then(|findings| findings.p_value) {
            None => return (Inconclusive, Why::NotScored),
            Some(p_value) if p_value > LEVEL => return (NoAssociation, Why::NotAboveControl),
            Some(_) => {}
        }
    }
    if basis.committed == Some(false) {
        return (Inconclusive, Why::CommitmentMismatch);
    }
    if effect.lower_bound <= comparability.upper_bound {
        return (Inconclusive, Why::NotAboveDifferences);
    }
    (Association, if basis.control.is_some() { Why::AboveControl } else { Why::AboveChance })
}

/// States the verdict and its reason.
pub fn sentence(verdict: &Verdict) -> String {
    let Verdict { primary, level, lists: [first, second], clusters: [m, n], .. } = verdict;
    let model = format!("`{}` ({})", verdict.model.id, verdict.model.digest);
    let state = first_words(verdict.state);
    let effect = verdict.effect.map_or_else(
        || "no AUROC".to_owned(),
        |effect| {
            let [low, high] = effect.interval;
            let splits = verdict.splits.map_or_else(String::new, |splits| {
                let [first, second] = splits.tested;
                format!(
                    ", medians of {} splits that test {first} + {second} of them (p twice the median)",
                    splits.number
                )
            });
            format!(
                "AUROC {:.3}, 99 % interval {low:.3} to {high:.3}, p = {} over {m} + {n} clusters{splits}",
                effect.auroc,
                stated_p_value(effect.p_value)
            )
        },
    );
    let control = verdict.control.as_ref().map_or_else(String::new, |control| {
        let p_value = control.p_value.map_or_else(|| "none".to_owned(), stated_p_value);
        format!(
            "; under the control `{}` AUROC is {:.3}, a difference of {:.3} with p = {p_value}",
            control.model, control.auroc, control.difference
        )
    });
    let result = format!("{effect}{control}");
    let texts_alone = verdict.comparability.as_ref().map_or_else(
        || "a classifier that knows the texts alone".to_owned(),
        |texts| {
            format!(
                "a classifier that knows the texts alone has an AUROC of {:.3} (upper 95 % bound {:.3}, comparable up to {:.3})",
                texts.auroc,
                texts.upper_bound,
                0.5 + texts.margin
            )
        },
    );
    let measures = verdict.comparability.as_ref().map_or_else(String::new, |texts| {
        texts
            .measures
            .iter()
            .map(|measure| format!("`{}` ({:.3})", measure.measure, measure.auroc))
            .collect::<Vec<_>>()
            .join(", ")
    });
    let power = verdict.could_have_found.map_or_else(String::new, |auroc| {
        format!("; so many clusters show an AUROC from {auroc:.3} with a power of 80 %")
    });
    let rest = match verdict.reason {
        VerdictReason::AboveControl | VerdictReason::AboveChance => format!(
            "under the model {model}, `{primary}` ranks {first} above {second} ({result}), at level {level} against the null \
             hypothesis that, {}; {texts_alone}. That does not exclude a difference between the lists that none of its measures \
             sees",
            verdict.hypothesis
        ),
        VerdictReason::NotAboveChance => format!(
            "under the model {model}, `{primary}` does not rank {first} above {second} at level {level} ({result}){power}"
        ),
        VerdictReason::NotAboveControl => format!(
            "under the model {model}, `{primary}` does not rank {first} above {second} by more than under the control at level \
             {level} ({result})"
        ),
        VerdictReason::MembersScoreLower => format!(
            "under the model {model}, `{primary}` ranks {first} below {second} ({result}): are the labels the right way round?"
        ),
        VerdictReason::NotAboveDifferences => format!(
            "under the model {model}, `{primary}` ranks {first} above {second} ({result}), but not by more than the lists' \
             differences could explain: {texts_alone}"
        ),
        VerdictReason::CommitmentMismatch => format!(
            "under the model {model}, `{primary}` ranks {first} above {second} ({result}), but the test is not the one that was \
             committed to"
        ),
        VerdictReason::ListsDiffer => format!(
            "{first} and {second} differ in what can be computed without the model {model}, most of all in {measures}: \
             {texts_alone}, so that nothing follows from `{primary}` ({result})"
        ),
        VerdictReason::TooFewToCompare => format!(
            "{} of {first} and {n} of {second} are too few to show that the lists are comparable: {texts_alone}, so \
             that nothing follows from `{primary}` under the model {model} ({result})",
            number_of(*m, "cluster")
        ),
        VerdictReason::NotCompared => format!(
            "whether {first} and {second} are comparable is not known, since texts are not at hand, so that nothing follows from \
             `{primary}` under the model {model} ({result})"
        ),
        VerdictReason::TooFew => format!(
            "{} of {first} and {n} of {second} have a score of `{primary}` under the model {model}, and a verdict takes {} of each",
            number_of(*m, "cluster"),
            FEWEST_CLUSTERS
        ),
        VerdictReason::NotScored => {
            format!("`{primary}` has no scores that can be compared under the model {model} or its control")
        }
    };
    format!("{state}: {rest}.")
}

/// The words that a sentence begins with.
pub fn first_words(state: VerdictState) -> &'static str {
    match state {
        VerdictState::Evidence => "Evidence",
        VerdictState::NoEvidence => "No evidence",
        VerdictState::Association => "Association",
        VerdictState::NoAssociation => "No association",
        VerdictState::Inconclusive => "Inconclusive",
    }
}

/// A p-value with three decimals, with four below 0.1, and with two significant digits below 0.001.
pub fn stated_p_value(p_value: f64) -> String {
    match p_value {
        ..0.001 => format!("{p_value:.1e}"),
        ..0.1 => format!("{p_value:.4}"),
        _ => format!("{p_value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audits::fixtures::model;
    use VerdictReason as Why;
    use VerdictState::{Association, Inconclusive, NoAssociation};

    struct Case {
        clusters: [usize; 2],
        auroc: f64,
        p_value: f64,
        /// The state and upper bound of the classifier; `None` if the lists are not compared.
        texts: Option<(ComparabilityState, f64)>,
        /// The p-value of the difference to the control; `Some(None)` without a p-value.
        control: Option<Option<f64>>,
        committed: Option<bool>,
    }

    const FOUND: Case = Case {
        clusters: [100, 100],
        auroc: 0.75,
        p_value: 0.0001,
        texts: Some((ComparabilityState::Comparable, 0.6)),
        control: Some(Some(0.001)),
        committed: None,
    };

    const DIFFER: Option<(ComparabilityState, f64)> = Some((ComparabilityState::ListsDiffer, 0.8));
    const TOO_FEW: Option<(ComparabilityState, f64)> = Some((ComparabilityState::TooFew, 0.66));
    const NEAR: Option<(ComparabilityState, f64)> = Some((ComparabilityState::Comparable, 0.64));

    /// The effect has a standard error of 0.03.
    fn verdict_of(case: &Case) -> Verdict {
        let primary: Arc<str> = "loss".into();
        let (auroc, p_value) = (case.auroc, case.p_value);
        let interval = [auroc - 0.077, auroc + 0.077];
        let effect = Effect { auroc, standard_error: 0.03, interval, lower_bound: auroc - 0.07, p_value };
        let findings = ControlFindings {
            model: "small".to_owned(),
            auroc: 0.52,
            difference: auroc - 0.52,
            standard_error: 0.04,
            interval: None,
            p_value: case.control.flatten(),
            p_value_adjusted: None,
            negative_controls: Vec::new(),
        };
        let comparability = case.texts.map(|(state, upper_bound)| Comparability {
            state,
            auroc: upper_bound - 0.06,
            standard_error: 0.036,
            upper_bound,
            margin: 0.15,
            measures: Vec::new(),
        });
        let (target, small) = (model("target"), model("small"));
        verdict(&VerdictBasis {
            primary: &primary,
            model: &target,
            lists: ["members", "non-members"],
            clusters: case.clusters,
            texts_per_cluster: 1,
            splits: None,
            effect: Some(effect).filter(|effect| effect.auroc > 0.0),
            control: case.control.map(|_| (&small, Some(&findings))),
            comparability: comparability.as_ref(),
            committed: case.committed,
        })
    }

    #[test]
    fn a_finding_is_above_chance_above_the_control_and_above_the_differences_of_the_lists() {
        let judged = |case: Case| {
            let verdict = verdict_of(&case);
            (verdict.state, verdict.reason)
        };
        for (case, expected) in [
            (FOUND, (Association, Why::AboveControl)),
            (Case { control: None, ..FOUND }, (Association, Why::AboveChance)),
            (Case { clusters: [19, 100], ..FOUND }, (Inconclusive, Why::TooFew)),
            (Case { auroc: 0.0, ..FOUND }, (Inconclusive, Why::NotScored)),
            (Case { texts: None, ..FOUND }, (Inconclusive, Why::NotCompared)),
            (Case { texts: DIFFER, ..FOUND }, (Inconclusive, Why::ListsDiffer)),
            (Case { texts: TOO_FEW, ..FOUND }, (Inconclusive, Why::TooFewToCompare)),
            (Case { auroc: 0.4, p_value: 1.0, ..FOUND }, (NoAssociation, Why::MembersScoreLower)),
            (Case { auroc: 0.49, p_value: 0.6, ..FOUND }, (NoAssociation, Why::NotAboveChance)),
            (Case { p_value: 0.011, ..FOUND }, (NoAssociation, Why::NotAboveChance)),
            (Case { p_value: 0.01, ..FOUND }, (Association, Why::AboveControl)),
            (Case { control: Some(Some(0.011)), ..FOUND }, (NoAssociation, Why::NotAboveControl)),
            (Case { control: Some(None), ..FOUND }, (Inconclusive, Why::NotScored)),
            (Case { auroc: 0.7, texts: NEAR, ..FOUND }, (Inconclusive, Why::NotAboveDifferences)),
            (Case { committed: Some(true), ..FOUND }, (Association, Why::AboveControl)),
            (Case { committed: Some(false), ..FOUND }, (Inconclusive, Why::CommitmentMismatch)),
        ] {
            assert_eq!(judged(case), expected);
        }
    }

    #[test]
    fn the_larger_p_value_counts_and_power_is_stated() {
        let verdict = verdict_of(&FOUND);
        assert_eq!((verdict.p_value, verdict.level), (Some(0.001), 0.01));
        assert!((verdict.could_have_found.unwrap() - 0.6296547235810628).abs() < 1e-9);
        assert_eq!(verdict_of(&Case { control: None, ..FOUND }).p_value, Some(0.0001));
    }

    /// Each sentence has the numbers of the fields that it is made of, and none claims more.
    #[test]
    fn sentences_are_made_of_the_fields() {
        let measured: &[&str] = &["AUROC 0.750, 99 % interval 0.673 to 0.827, p = 1.0e-4 over 100 + 100 clusters"];
        let controlled: &[&str] = &["under the control `small` AUROC is 0.520, a difference of 0.230 with p = 0.001"];
        let texts: &[&str] =
            &["AUROC of 0.540 (upper 95 % bound 0.600, comparable up to 0.650)", "that none of its measures sees"];
        let power: &[&str] = &["an AUROC from 0.630 with a power of 80 %"];
        for (case, parts) in [
            (
                FOUND,
                [measured, controlled, texts, &["`loss` ranks members above non-members", HYPOTHESIS, "level 0.01"]]
                    .concat(),
            ),
            (Case { control: None, ..FOUND }, [measured, texts].concat()),
            (Case { p_value: 0.2, control: None, ..FOUND }, [power, &["does not rank", "p = 0.200"]].concat()),
            (Case { control: Some(Some(0.3)), ..FOUND }, vec!["by more than under the control", "p = 0.300"]),
            (Case { auroc: 0.4, ..FOUND }, vec!["below non-members", "are the labels the right way round?"]),
            (Case { texts: NEAR, auroc: 0.7, ..FOUND }, vec!["not by more than the lists' differences", "bound 0.640"]),
            (Case { texts: DIFFER, ..FOUND }, vec!["differ in what can be computed without the model", "bound 0.800"]),
            (Case { texts: TOO_FEW, ..FOUND }, vec!["too few to show that the lists are comparable", "bound 0.660"]),
            (Case { texts: None, ..FOUND }, vec!["texts are not at hand"]),
            (
                Case { clusters: [7, 100], ..FOUND },
                vec!["7 clusters of members and 100 of non-members", "takes 20 of each"],
            ),
            (Case { committed: Some(false), ..FOUND }, [measured, &["not the one that was committed to"]].concat()),
            (Case { auroc: 0.0, ..FOUND }, vec!["no scores that can be compared"]),
        ] {
            let Verdict { sentence, .. } = verdict_of(&case);
            for part in parts.iter().chain(&["`target` (sha256:target)"]) {
                assert!(sentence.contains(part), "{part} in: {sentence}");
            }
            assert!(sentence.ends_with(['.']) && !sentence.contains("  "), "{sentence}");
            for claim in ["do not explain", "explains it", "has not seen", "Evidence"] {
                assert!(!sentence.contains(claim), "{claim} in: {sentence}");
            }
        }
    }
}
