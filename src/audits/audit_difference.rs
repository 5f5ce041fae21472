//! Differences between the scores of two audits of the same samples, method by method: a pure function of paired scores.

use mia::statistics::{
    Bootstrap, BootstrapColumn, ColumnBootstrap, LabelledScore, PairedDeLong, PairedScore, auroc, bootstrap, delong,
};
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// The scores of one method in two audits, paired: both lists have one place for each sample, in the same order.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedMethod {
    /// The label that the method has in both audits.
    pub label: Arc<str>,
    /// Scores in audit a; `None` for a sample that it could not score.
    pub a: Vec<Option<f64>>,
    /// Scores in audit b.
    pub b: Vec<Option<f64>>,
}

/// Differences of one method between two audits, a and b, on the samples that both score.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct MethodDifference {
    #[schema(value_type = String)]
    pub label: Arc<str>,
    /// Samples that both audits score.
    pub scored: usize,
    /// Absent without labels, and where these samples are all of one class.
    #[serde(flatten)]
    pub separation: Option<SeparationDifference>,
    /// Mean of the score in b minus the score in a; only without labels. Absent where no sample is scored by both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_difference: Option<f64>,
}

/// Difference in the separation of members from non-members.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct SeparationDifference {
    /// Area under the ROC curve in audit a.
    #[schema(required = false)]
    pub auroc_a: f64,
    /// Area under the ROC curve in audit b.
    #[schema(required = false)]
    pub auroc_b: f64,
    /// AUROC in b minus AUROC in a, with standard error, interval and two-sided p-value by DeLong.
    #[serde(flatten)]
    pub difference: PairedDeLong,
    /// Of the difference over replicates that draw the same samples for both audits; absent where none were asked for,
    /// or all were discarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bootstrap_interval: Option<[f64; 2]>,
}

/// Compares `methods` of two audits, in order.
///
/// `labels` has one place for each sample: whether it is a member; so has `clusters`, where equal numbers are one cluster, and a
/// sample beyond its end is a cluster by itself. Unless all samples have a label, the samples count as
/// unlabelled, and the answer has only the mean difference of the scores. `resampling` says how to draw the samples anew;
/// its confidence is also that of DeLong's interval, 95 % without it. The result is of no use once it is not `wanted` any
/// more. O(n log n) for each method and O(n) for each of its replicates.
pub fn audit_difference(
    labels: &[Option<bool>],
    clusters: &[usize],
    methods: &[PairedMethod],
    resampling: Option<&Bootstrap>,
    wanted: &dyn Fn() -> bool,
) -> Vec<MethodDifference> {
    let methods: Vec<PairedMethod> = methods.iter().map(on_common_samples).collect();
    let Some(labels) = labels.iter().copied().collect::<Option<Vec<bool>>>() else {
        return methods.iter().map(unlabelled_difference).collect();
    };
    let resampled = resampling.map_or(Vec::new(), |settings| resample(&labels, clusters, &methods, settings, wanted));
    let confidence = resampling.map_or(Bootstrap::default().confidence, |settings| settings.confidence);
    let difference = |(place, method): (usize, &PairedMethod)| MethodDifference {
        label: Arc::clone(&method.label),
        scored: method.pairs().count(),
        separation: separation_difference(&labels, clusters, method, resampled.get(2 * place + 1), confidence),
        mean_difference: None,
    };
    methods.iter().enumerate().map(difference).collect()
}

impl PairedMethod {
    /// Both scores of the samples that have both.
    fn pairs(&self) -> impl Iterator<Item = (f64, f64)> {
        self.a.iter().zip(&self.b).filter_map(|(a, b)| a.zip(*b))
    }

    /// The samples that have both scores, with their labels and clusters. A sample beyond the clusters is its own.
    fn labelled_pairs(&self, labels: &[bool], clusters: &[usize]) -> Vec<(PairedScore, usize)> {
        let paired = |place: usize| {
            let (first, second) = (*self.a.get(place)?, *self.b.get(place)?);
            let cluster = clusters.get(place).copied().unwrap_or(clusters.len() + place);
            Some((PairedScore { member: labels[place], first: first?, second: second? }, cluster))
        };
        (0..labels.len()).filter_map(paired).collect()
    }
}

/// The scores of the samples that both audits score: a sample that one of them misses is missing in both.
fn on_common_samples(method: &PairedMethod) -> PairedMethod {
    let common = |(a, b): (&Option<f64>, &Option<f64>)| match a.zip(*b) {
        Some((a, b)) if a.is_finite() && b.is_finite() => (Some(a), Some(b)),
        _ => (None, None),
    };
    let (a, b) = method.a.iter().zip(&method.b).map(common).unzip();
    PairedMethod { label: Arc::clone(&method.label), a, b }
}

fn unlabelled_difference(method: &PairedMethod) -> MethodDifference {
    let scored = method.pairs().count();
    let sum: f64 = method.pairs().map(|(a, b)| b - a).sum();
    MethodDifference {
        label: Arc::clone(&method.label),
        scored,
        separation: None,
        mean_difference: Some(sum / scored as f64).filter(|mean| mean.is_finite()),
    }
}

fn separation_difference(
    labels: &[bool],
    clusters: &[usize],
    method: &PairedMethod,
    resampled: Option<&ColumnBootstrap>,
    confidence: f64,
) -> Option<SeparationDifference> {
    let (pairs, clusters): (Vec<PairedScore>, Vec<usize>) = method.labelled_pairs(labels, clusters).into_iter().unzip();
    let area = |score: fn(&PairedScore) -> f64| {
        let labelled = |pair: &PairedScore| LabelledScore { score: score(pair), member: pair.member };
        auroc(&pairs.iter().map(labelled).collect::<Vec<_>>()).ok()
    };
    Some(SeparationDifference {
        auroc_a: area(|pair| pair.first)?,
        auroc_b: area(|pair| pair.second)?,
        difference: delong(&pairs, &clusters, confidence).ok()?,
        bootstrap_interval: resampled.and_then(|resampled| resampled.versus_baseline?.interval),
    })
}

/// Of each method two columns: audit a, then audit b with audit a as its baseline.
fn resample(
    labels: &[bool],
    clusters: &[usize],
    methods: &[PairedMethod],
    settings: &Bootstrap,
    wanted: &dyn Fn() -> bool,
) -> Vec<ColumnBootstrap> {
    let columns = methods.iter().enumerate().flat_map(|(place, method)| {
        let a = BootstrapColumn { scores: &method.a, baseline: None };
        [a, BootstrapColumn { scores: &method.b, baseline: Some(2 * place) }]
    });
    bootstrap(labels, clusters, &columns.collect::<Vec<_>>(), &[], settings, wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: [bool; 12] = [true, false, true, false, true, false, true, false, true, false, true, false];

    fn labels(labelled: bool) -> Vec<Option<bool>> {
        LABELS.iter().map(|member| Some(*member).filter(|_| labelled)).collect()
    }

    /// Audit b separates the classes better than audit a; the last samples are scored by one audit alone.
    fn method() -> PairedMethod {
        let a = [0.1, 0.2, 0.9, 0.4, 0.5, 0.6, 0.7, 0.8, 0.3, 0.0];
        let b = [0.6, 0.2, 0.9, 0.4, 0.8, 0.5, 0.7, 0.3, 0.3, 0.0];
        let scores = |scores: [f64; 10], last: [Option<f64>; 2]| scores.map(Some).into_iter().chain(last).collect();
        PairedMethod { label: "loss".into(), a: scores(a, [Some(9.0), None]), b: scores(b, [None, Some(-9.0)]) }
    }

    #[test]
    fn labelled_audits_are_compared_by_their_separation() {
        let settings = Bootstrap { replicates: 200, ..Bootstrap::default() };
        let differences = audit_difference(&labels(true), &[], &[method(), method()], Some(&settings), &|| true);
        assert_eq!((differences.len(), &differences[0]), (2, &differences[1]));
        let difference = &differences[0];
        assert_eq!((&*difference.label, difference.scored, difference.mean_difference), ("loss", 10, None));
        let separation = difference.separation.as_ref().expect("both classes");
        // Non-members that each member beats: 1 + 5 + 3 + 4 + 2 in a, 5 + 5 + 5 + 5 + 2.5 in b; of 25 pairs.
        assert_eq!((separation.auroc_a, separation.auroc_b), (15.0 / 25.0, 22.5 / 25.0));
        assert!((separation.difference.delta - 0.3).abs() < 1e-12);
        assert!(separation.difference.p_value.is_some_and(|p| p > 0.0 && p < 1.0));
        let [low, high] = separation.bootstrap_interval.expect("replicates");
        assert!(low < high && low <= separation.difference.delta && separation.difference.delta <= high);
        // The same draws as for a method and its baseline within one audit.
        let PairedMethod { a, b, .. } = on_common_samples(&method());
        let columns =
            [BootstrapColumn { scores: &a, baseline: None }, BootstrapColumn { scores: &b, baseline: Some(0) }];
        let within = bootstrap(&LABELS, &[], &columns, &[], &settings, &|| true);
        assert_eq!(separation.bootstrap_interval, within[1].versus_baseline.and_then(|paired| paired.interval));
    }

    #[test]
    fn without_replicates_there_is_no_bootstrap_interval() {
        let differences = audit_difference(&labels(true), &[], &[method()], None, &|| true);
        let separation = differences[0].separation.as_ref().expect("both classes");
        assert!(separation.bootstrap_interval.is_none() && separation.difference.interval.is_some());
    }

    #[test]
    fn unlabelled_audits_are_compared_by_their_scores() {
        let differences = audit_difference(&labels(false), &[], &[method()], Some(&Bootstrap::default()), &|| true);
        let mean = differences[0].mean_difference.expect("scores");
        // The sum of the differences is 0.5 + 0.3 - 0.1 - 0.5.
        assert!((mean - 0.02).abs() < 1e-12 && differences[0].separation.is_none());
        let json = serde_json::to_value(&differences[0]).expect("JSON");
        assert_eq!(json.as_object().map(|fields| fields.len()), Some(3), "{json}");
    }

    #[test]
    fn what_has_no_difference_is_left_out() {
        let empty = PairedMethod { label: "zlib".into(), a: vec![None; 12], b: vec![Some(1.0); 12] };
        for labelled in [false, true] {
            let differences = audit_difference(&labels(labelled), &[], std::slice::from_ref(&empty), None, &|| true);
            assert_eq!(differences[0].scored, 0);
            assert!(differences[0].separation.is_none() && differences[0].mean_difference.is_none());
        }
        // Only members are scored by both.
        let of_one_class = |score: f64| LABELS.iter().map(|member| member.then_some(score)).collect();
        let method = PairedMethod { label: "ref".into(), a: of_one_class(1.0), b: of_one_class(2.0) };
        let differences = audit_difference(&labels(true), &[], &[method], Some(&Bootstrap::default()), &|| true);
        assert_eq!((differences[0].scored, &differences[0].separation), (6, &None));
    }
}
