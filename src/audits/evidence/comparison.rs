//! AUROC of clusters, alone and beside that under a control model.

use super::CONFIDENCE;
use mia::methods::{AuxiliaryPass, LabelledMethod, Method, MethodName, Weighting, control_measures as measures};
use mia::statistics::{
    CONTROL_MEASURES, ClusterScores, ClusteredTexts, PairedScore, StratifiedDifference, delong, normal_quantile,
    stratified_delong,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The confidence of the interval of an effect; its one-sided bound has the same.
const EFFECT_CONFIDENCE: f64 = 0.99;
/// Minimum number of non-members in a group that is a negative control.
const FEWEST: usize = 50;
/// Maximum number of such groups, the largest ones: 28 pairs.
const MOST_GROUPS: usize = 8;

/// Effect size: how far the first list scores above the second one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Effect {
    /// Over clusters, within groups where samples name some.
    pub auroc: f64,
    /// By DeLong.
    pub standard_error: f64,
    /// Normal, two-sided, at a confidence of 0.99, within [0, 1].
    pub interval: [f64; 2],
    /// One-sided lower bound at a confidence of 0.99.
    pub lower_bound: f64,
    /// Of an AUROC of at most one half, one-sided.
    pub p_value: f64,
}

/// Separation by the method beyond its separation of the same texts under the control model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ControlFindings {
    /// Id of the control model.
    pub model: String,
    /// AUROC under the control over clusters that both score, within groups where samples name some; of `ref`, `wbc` and `ez` that of `loss`.
    pub auroc: f64,
    /// AUROC under the model asked about minus that under the control.
    pub difference: f64,
    /// By DeLong.
    pub standard_error: f64,
    /// Normal, at a confidence of 0.95; absent without a standard error above 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Of a difference of at most 0, against permutations of the clusters' labels, one-sided; absent where nothing varies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// The same for whoever picks the best of the listed methods, by Westfall and Young (max-T).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value_adjusted: Option<f64>,
    /// The same difference between groups of non-members of at least 50 texts, where there is nothing to find. They decide
    /// nothing.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    #[schema(required = false)]
    pub negative_controls: Vec<NegativeControl>,
}

impl Effect {
    /// Computes the effect of one of several scores of clusters, given its p-value; `None` if there is no pair.
    pub fn new<const N: usize>(
        scores: &ClusterScores<N>,
        place: usize,
        clustered: &ClusteredTexts,
        p_value: f64,
    ) -> Option<Self> {
        let above_half = difference(scores, clustered, |scores| [0.0, scores[place]])?;
        let (auroc, standard_error) = (0.5 + above_half.delta, above_half.standard_error);
        let half = normal_quantile(EFFECT_CONFIDENCE)? * standard_error;
        // A one-sided bound has the quantile of a two-sided interval at twice the distance from 1.
        let one_sided = normal_quantile(2.0 * EFFECT_CONFIDENCE - 1.0)? * standard_error;
        Some(Self {
            auroc,
            standard_error,
            interval: [auroc - half, auroc + half].map(|bound| bound.clamp(0.0, 1.0)),
            lower_bound: (auroc - one_sided).max(0.0),
            p_value,
        })
    }
}

impl ControlFindings {
    /// Compares the scores of clusters under the model asked about and under the control, in this order; `None` where there is
    /// no pair.
    pub fn new(model: &str, scores: &ClusterScores<2>, clustered: &ClusteredTexts) -> Option<Self> {
        let control = difference(scores, clustered, |scores| [0.0, scores[1]])?;
        let StratifiedDifference { delta, standard_error } = difference(scores, clustered, |[a, b]| [b, a])?;
        let half = normal_quantile(CONFIDENCE)? * standard_error;
        Some(Self {
            model: model.to_owned(),
            auroc: 0.5 + control.delta,
            difference: delta,
            standard_error,
            interval: (standard_error > 0.0).then_some([delta - half, delta + half]),
            p_value: None,
            p_value_adjusted: None,
            negative_controls: Vec::new(),
        })
    }
}

fn difference<const N: usize>(
    scores: &ClusterScores<N>,
    clustered: &ClusteredTexts,
    pair: impl Fn([f64; N]) -> [f64; 2],
) -> Option<StratifiedDifference> {
    let scored = scores.values.iter().zip(clustered.labels()).zip(clustered.strata());
    let pairs = scored.filter_map(|((values, &member), &stratum)| {
        let [first, second] = pair((*values)?);
        Some((PairedScore { member, first, second }, stratum))
    });
    let (samples, strata): (Vec<PairedScore>, Vec<usize>) = pairs.unzip();
    stratified_delong(&samples, &strata)
}

/// The difference to the control where there is nothing to find: two groups of non-members in place of the two classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NegativeControl {
    pub groups: [String; 2],
    /// AUROC between the groups minus that under the control.
    pub difference: f64,
    /// Together with those of the other negative controls at a confidence of 0.95 (Bonferroni). Absent without a standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

impl NegativeControl {
    /// True if the interval contains 0; without an interval, if the difference is 0.
    pub fn holds(&self) -> bool {
        self.interval.map_or(self.difference == 0.0, |[low, high]| low <= 0.0 && 0.0 <= high)
    }
}

/// A non-member that has a group and a score.
#[derive(Clone, Copy, Debug)]
pub struct NegativeControlSample<'a> {
    pub group: &'a str,
    pub cluster: usize,
    pub control: f64,
    pub target: f64,
}

/// The differences between the groups of these non-members that are large enough.
pub fn negative_controls(samples: &[NegativeControlSample]) -> Vec<NegativeControl> {
    let groups = large_groups(samples);
    let pairs: Vec<(&str, &str)> =
        groups.iter().enumerate().flat_map(|(place, &a)| groups[place + 1..].iter().map(move |&b| (a, b))).collect();
    let confidence = 1.0 - (1.0 - CONFIDENCE) / pairs.len().max(1) as f64;
    pairs.into_iter().filter_map(|(a, b)| negative_control(samples, a, b, confidence)).collect()
}

/// The largest groups, in the order in which they appear.
fn large_groups<'a>(samples: &[NegativeControlSample<'a>]) -> Vec<&'a str> {
    let mut counts = indexmap::IndexMap::<&str, usize>::new();
    for sample in samples {
        *counts.entry(sample.group).or_default() += 1;
    }
    let mut sizes: Vec<usize> = counts.values().copied().filter(|count| *count >= FEWEST).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let smallest = sizes.get(MOST_GROUPS - 1).copied().unwrap_or(FEWEST);
    counts.into_iter().filter(|(_, count)| *count >= smallest).map(|(group, _)| group).take(MOST_GROUPS).collect()
}

fn negative_control(samples: &[NegativeControlSample], a: &str, b: &str, confidence: f64) -> Option<NegativeControl> {
    let both: Vec<&NegativeControlSample> =
        samples.iter().filter(|sample| sample.group == a || sample.group == b).collect();
    let paired = |sample: &&NegativeControlSample| PairedScore {
        member: sample.group == a,
        first: sample.control,
        second: sample.target,
    };
    let clusters: Vec<usize> = both.iter().map(|sample| sample.cluster).collect();
    let scores: Vec<PairedScore> = both.iter().map(paired).collect();
    let difference = delong(&scores, &clusters, confidence).ok()?;
    Some(NegativeControl {
        groups: [a.to_owned(), b.to_owned()],
        difference: difference.delta,
        interval: difference.interval,
    })
}

/// True if the control model can compute the method as the target does. It cannot for methods that compare with a model
/// themselves, nor for methods tied to the target: by an adapter, or by the entropies of all texts under it. Under another
/// tokenization, positions and counts of tokens differ.
pub fn is_controllable(method: &LabelledMethod, same_tokenization: bool) -> bool {
    let Method { base, pdr, .. } = &method.method;
    let weighting = pdr.map(|pdr| pdr.weighting);
    let belongs_to_target = base.passes().iter().any(|(_, pass)| match pass {
        AuxiliaryPass::Reference(_) | AuxiliaryPass::ReferenceTokenization(_) | AuxiliaryPass::Tuned(_) => true,
        AuxiliaryPass::Lowercase
        | AuxiliaryPass::Split(_)
        | AuxiliaryPass::Neighbors(_)
        | AuxiliaryPass::Swapped(_)
        | AuxiliaryPass::Prefixed(_) => false,
    });
    let needs_tokenization = weighting.is_some() || base.name() == MethodName::DcPdd;
    !belongs_to_target && weighting != Some(Weighting::EntropyDataset) && (same_tokenization || !needs_tokenization)
}

/// The methods of the control's own measures of a text, in the order of `TextFacts::control`, under labels that no method of a
/// request has.
pub fn control_measures() -> [LabelledMethod; CONTROL_MEASURES] {
    measures().map(|method| LabelledMethod { label: format!("{}\u{0}control", method.label).into(), ..method })
}

/// True if the method compares with a model that did not see the text. Its score under the control is that model's `loss`.
pub fn controls_itself(method: &LabelledMethod) -> bool {
    matches!(method.method.base.name(), MethodName::Ref | MethodName::Wbc | MethodName::Ez)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(groups: &[(&'static str, usize, f64)]) -> Vec<NegativeControlSample<'static>> {
        let group = |&(group, count, shift): &(&'static str, usize, f64)| {
            (0..count).map(move |place| {
                let noise = (place * 7919 % 101) as f64 / 100.0;
                NegativeControlSample { group, cluster: 0, control: noise, target: noise + shift }
            })
        };
        let mut samples: Vec<NegativeControlSample> = groups.iter().flat_map(group).collect();
        samples.iter_mut().enumerate().for_each(|(place, sample)| sample.cluster = place);
        samples
    }

    #[test]
    fn groups_of_fifty_are_compared_and_a_shift_between_them_shows() {
        let compared = negative_controls(&samples(&[("a", 60, 0.0), ("b", 49, 0.0), ("c", 80, 0.4)]));
        assert_eq!(compared.len(), 1);
        assert_eq!(compared[0].groups, ["a".to_owned(), "c".to_owned()]);
        assert!(compared[0].difference < -0.2 && !compared[0].holds(), "{compared:?}");
        let same = negative_controls(&samples(&[("a", 60, 0.0), ("c", 80, 0.0)]));
        assert!(same[0].difference == 0.0 && same[0].holds(), "{same:?}");
    }

    #[test]
    fn more_negative_controls_have_wider_intervals() {
        let width = |groups: &[(&'static str, usize, f64)]| {
            let compared = negative_controls(&samples(groups));
            let [low, high] = compared[0].interval.unwrap();
            high - low
        };
        let two = [("a", 60, 0.0), ("b", 60, 0.1)];
        let three = [two[0], two[1], ("c", 60, 0.2)];
        assert!(width(&three) > 1.1 * width(&two));
        let names = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
        let ten: Vec<_> = names.iter().map(|&name| (name, 60, 0.0)).collect();
        assert_eq!(negative_controls(&samples(&ten)).len(), 28);
    }
}
