//! A verdict in a sentence that can be read aloud, made of its fields alone.

use super::verdict::{FEWEST_CLUSTERS, Verdict, VerdictReason, VerdictState};

/// States the verdict and its reason.
pub fn sentence(verdict: &Verdict) -> String {
    let Verdict { primary, level, lists: [first, second], clusters: [m, n], .. } = verdict;
    let model = format!("`{}` ({})", verdict.model.id, verdict.model.digest);
    let state = first_words(verdict.state);
    let effect = verdict.effect.map_or_else(
        || "no AUROC".to_owned(),
        |effect| {
            let [low, high] = effect.interval;
            format!(
                "AUROC {:.3}, 99 % interval {low:.3} to {high:.3}, p = {} over {m} + {n} clusters",
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
            "{m} clusters of {first} and {n} of {second} are too few to show that the lists are comparable: {texts_alone}, so \
             that nothing follows from `{primary}` under the model {model} ({result})"
        ),
        VerdictReason::NotCompared => format!(
            "whether {first} and {second} are comparable is not known, since texts are not at hand, so that nothing follows from \
             `{primary}` under the model {model} ({result})"
        ),
        VerdictReason::TooFew => format!(
            "there are {m} clusters of {first} and {n} of {second} with a score of `{primary}` under the model {model}, and a \
             verdict takes {} of each",
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
