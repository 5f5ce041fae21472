//! Unlearning: whether a model treats texts that it was made to forget as a model does that never saw them. Pure.
//!
//! Audit a is that of the model that never saw them (`retain`), audit b that of the unlearned one. Members are the texts to forget,
//! non-members texts that neither has seen. Members that b ranks higher than a does are not forgotten; those that it ranks lower
//! stand out by being avoided. Both are differences, so the test is two-sided.

use super::audit_difference::{MethodDifference, PairedMethod, SeparationDifference};
use super::evidence::{FEWEST_CLUSTERS, LEVEL, VerdictModel, stated_p_value};
use super::report::adjust_by_holm;
use mia::statistics::normal_quantile;
use serde::Serialize;
use std::collections::HashSet;
use std::sync::Arc;
use strum::Display;
use utoipa::ToSchema;

/// Whether the unlearned model treats the members as the model that never saw them does.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Unlearning {
    /// The null hypothesis.
    pub hypothesis: String,
    /// The significance level of the two-sided tests, of p-values that are adjusted for the number of methods.
    pub level: f64,
    /// The model that never saw the members: that of audit a.
    pub retain: VerdictModel,
    /// The unlearned model: that of audit b.
    pub unlearned: VerdictModel,
    /// Assumptions of the tests.
    pub assumptions: Vec<String>,
    /// One entry for each method that both audits have under the same label.
    pub methods: Vec<MethodUnlearning>,
}

/// The two models by one method. The sentence is made of the other fields and of the models.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct MethodUnlearning {
    #[schema(value_type = String)]
    pub label: Arc<str>,
    pub direction: UnlearningDirection,
    /// Clusters of members and of non-members that both audits score.
    pub clusters: [usize; 2],
    /// AUROC under the unlearned model minus that under the other one; absent where nothing is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<f64>,
    /// Normal interval of the difference at a confidence of 0.99, by DeLong; absent without a standard error above 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Two-sided p-value of a difference of 0, by DeLong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// The same by Holm, for whoever picks one of the methods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value_adjusted: Option<f64>,
    /// PrivLeak of MUSE (Shi et al. 2024) in percent: with R the share of pairs in which the non-member scores higher, 100 (R_b - R_a) / R_a.
    /// Negative where members are not forgotten. Absent where R_a is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privleak: Option<f64>,
    pub sentence: String,
}

/// The direction in which the unlearned model differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum UnlearningDirection {
    /// It ranks the members higher than the model that never saw them.
    UnderUnlearning,
    /// It ranks them lower.
    OverUnlearning,
    /// No difference is shown, which does not show that there is none: the interval says how large it may be.
    NoDifferenceShown,
    /// Fewer than 20 clusters of a class have scores of both audits, or nothing varies.
    Inconclusive,
}

impl Unlearning {
    /// Compares the models of two audits by what they say of the samples that both have; all of them are labelled. The lists are those that
    /// [`super::audit_difference`] takes, and what it returned of them.
    pub fn new(
        [retain, unlearned]: [VerdictModel; 2],
        labels: &[Option<bool>],
        clusters: &[usize],
        methods: &[PairedMethod],
        differences: &[MethodDifference],
    ) -> Self {
        let compared = methods.iter().zip(differences);
        let mut methods: Vec<MethodUnlearning> = compared
            .map(|(method, difference)| MethodUnlearning::new(difference, cluster_counts(method, labels, clusters)))
            .collect();
        adjust_by_holm(methods.iter_mut().filter_map(|method| Some((method.p_value?, &mut method.p_value_adjusted))));
        let assumptions = [
            "the model of audit a saw none of the members, and was trained as the other one in all else",
            "neither model saw the non-members",
            "clusters of texts are independent of each other",
        ];
        let mut unlearning = Self {
            hypothesis: "both models rank the members alike among the non-members".to_owned(),
            level: LEVEL,
            retain,
            unlearned,
            assumptions: assumptions.map(str::to_owned).into(),
            methods,
        };
        for (place, difference) in differences.iter().enumerate() {
            unlearning.methods[place].direction = unlearning.methods[place].judged();
            unlearning.methods[place].sentence =
                unlearning.sentence(&unlearning.methods[place], difference.separation.as_ref());
        }
        unlearning
    }

    fn sentence(&self, method: &MethodUnlearning, separation: Option<&SeparationDifference>) -> String {
        let model = |model: &VerdictModel| format!("`{}` ({})", model.id, model.digest);
        let (label, level) = (&method.label, self.level);
        let (unlearned, retain) = (model(&self.unlearned), model(&self.retain));
        let [members, others] = method.clusters;
        let result = separation.map_or_else(
            || "no AUROC".to_owned(),
            |SeparationDifference { auroc_a, auroc_b, difference, .. }| {
                let interval = method
                    .interval
                    .map_or_else(String::new, |[low, high]| format!(", 99 % interval {low:+.3} to {high:+.3}"));
                let p_value = method.p_value_adjusted.map_or_else(|| "none".to_owned(), stated_p_value);
                let privleak = method.privleak.map_or_else(String::new, |leak| format!(", PrivLeak {leak:+.1} %"));
                let methods = match self.methods.len() {
                    1 => String::new(),
                    count => format!(" adjusted for {count} methods"),
                };
                format!(
                    "AUROC {auroc_b:.3} against {auroc_a:.3}, a difference of {:+.3}{interval}{privleak}, two-sided p = \
                     {p_value}{methods} over {members} + {others} clusters",
                    difference.delta
                )
            },
        );
        let (words, rest) = match method.direction {
            UnlearningDirection::UnderUnlearning => ("Under-unlearning", "ranks members higher among non-members than"),
            UnlearningDirection::OverUnlearning => ("Over-unlearning", "ranks members lower among non-members than"),
            UnlearningDirection::NoDifferenceShown => {
                return format!(
                    "No difference shown: by `{label}` it is not shown at level {level} that the unlearned model {unlearned} \
                     ranks members otherwise than {retain}, which never saw them ({result}); the interval says how large a \
                     difference may be."
                );
            }
            UnlearningDirection::Inconclusive => {
                return format!(
                    "Inconclusive: by `{label}` {members} clusters of members and {others} of non-members are compared under \
                     {unlearned} and {retain} ({result}); it takes {FEWEST_CLUSTERS} of each, and scores that vary."
                );
            }
        };
        format!(
            "{words}: by `{label}` the unlearned model {unlearned} {rest} {retain}, which never saw them ({result}), at \
             two-sided level {level} against the null hypothesis that {}. It is a direction by this method, and no proof of what \
             the model holds of any text.",
            self.hypothesis
        )
    }
}

impl MethodUnlearning {
    fn new(method: &MethodDifference, clusters: [usize; 2]) -> Self {
        let separation = method.separation.as_ref();
        let difference = separation.map(|separation| separation.difference);
        let error = difference.and_then(|difference| difference.standard_error).filter(|error| *error > 0.0);
        let privleak = separation.map(|separation| {
            let above = |auroc: f64| 1.0 - auroc;
            100.0 * (above(separation.auroc_b) - above(separation.auroc_a)) / above(separation.auroc_a)
        });
        let half = error.zip(normal_quantile(1.0 - LEVEL)).map(|(error, quantile)| quantile * error);
        Self {
            label: Arc::clone(&method.label),
            direction: UnlearningDirection::Inconclusive,
            clusters,
            difference: difference.map(|difference| difference.delta),
            interval: difference.zip(half).map(|(difference, half)| [difference.delta - half, difference.delta + half]),
            p_value: difference.and_then(|difference| difference.p_value),
            p_value_adjusted: None,
            privleak: privleak.filter(|leak| leak.is_finite()),
            sentence: String::new(),
        }
    }

    fn judged(&self) -> UnlearningDirection {
        let is_enough = self.clusters.iter().all(|count| *count >= FEWEST_CLUSTERS);
        match (self.difference, self.p_value_adjusted) {
            (Some(difference), Some(p_value)) if is_enough && p_value <= LEVEL => match difference > 0.0 {
                true => UnlearningDirection::UnderUnlearning,
                false => UnlearningDirection::OverUnlearning,
            },
            (Some(_), Some(_)) if is_enough => UnlearningDirection::NoDifferenceShown,
            _ => UnlearningDirection::Inconclusive,
        }
    }
}

/// The clusters with members, and with non-members, that both audits score.
fn cluster_counts(method: &PairedMethod, labels: &[Option<bool>], clusters: &[usize]) -> [usize; 2] {
    [true, false].map(|side| {
        let scored = method.a.iter().zip(&method.b).zip(labels).zip(clusters);
        let counted = scored.filter(|(((a, b), label), _)| a.is_some() && b.is_some() && **label == Some(side));
        counted.map(|(_, cluster)| cluster).collect::<HashSet<_>>().len()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audits::audit_difference::audit_difference;
    use crate::audits::fixtures::model;

    /// Scores of 40 samples, members first: 0 to 19 in an order that `step` decides, of members `high` more.
    fn scores(high: f64, step: usize) -> Vec<Option<f64>> {
        let noise = |place: usize| (place * step % 20) as f64;
        (0..40).map(|place| Some(noise(place % 20) + if place < 20 { high } else { 0.0 })).collect()
    }

    fn unlearning(a: f64, b: f64, clusters: &[usize]) -> MethodUnlearning {
        let labels: Vec<Option<bool>> = (0..40).map(|place| Some(place < 20)).collect();
        let methods = [PairedMethod { label: "min_k(k=0.4)".into(), a: scores(a, 7), b: scores(b, 13) }];
        let differences = audit_difference(&labels, clusters, &methods, None, &|| true);
        let models = ["retain", "unlearned"].map(|name| VerdictModel::from(&model(name)));
        let mut unlearning = Unlearning::new(models, &labels, clusters, &methods, &differences);
        assert_eq!(unlearning.methods.len(), 1);
        unlearning.methods.remove(0)
    }

    #[test]
    fn each_direction_has_its_words() {
        let clusters: Vec<usize> = (0..40).collect();
        for (a, b, direction, words) in [
            (0.0, 12.0, UnlearningDirection::UnderUnlearning, "ranks members higher"),
            (0.0, -12.0, UnlearningDirection::OverUnlearning, "ranks members lower"),
            (0.0, 0.25, UnlearningDirection::NoDifferenceShown, "it is not shown at level 0.01"),
        ] {
            let method = unlearning(a, b, &clusters);
            assert_eq!((method.direction, method.clusters), (direction, [20, 20]), "{method:?}");
            let sentence = &method.sentence;
            for part in [words, "`min_k(k=0.4)`", "99 % interval", "PrivLeak", "20 + 20 clusters", "(sha256:retain)"] {
                assert!(sentence.contains(part), "{part} in: {sentence}");
            }
            assert!(sentence.ends_with('.') && !sentence.contains("  "), "{sentence}");
        }
    }

    /// AUROC 1/2 of a, so that R_a is 1/2.
    #[test]
    fn privleak_is_that_of_muse() {
        let clusters: Vec<usize> = (0..40).collect();
        let method = unlearning(0.0, 0.5, &clusters);
        // Ties of the twenty equal pairs become wins: AUROC 0.5 + 20 / 800.
        assert!((method.difference.unwrap() - 0.025).abs() < 1e-12, "{method:?}");
        assert!((method.privleak.unwrap() + 5.0).abs() < 1e-9, "{method:?}");
        assert_eq!(unlearning(100.0, 0.0, &clusters).privleak, None);
    }

    #[test]
    fn too_few_clusters_show_nothing() {
        let clusters: Vec<usize> = (0..40).map(|place| place / 2).collect();
        let method = unlearning(0.0, 12.0, &clusters);
        assert_eq!((method.direction, method.clusters), (UnlearningDirection::Inconclusive, [10, 10]));
        assert!(method.sentence.contains("it takes 20 of each"), "{}", method.sentence);
    }
}
