//! Findings on each method from the scores of some samples.

use super::document::{MethodFindings, Separation, VersusBaseline};
use crate::audits::clusters::clusters;
use crate::audits::columns::Column;
use crate::audits::request::AuditMetrics;
use crate::audits::results::SampleScores;
use mia::methods::LabelledMethod;
use mia::statistics::{
    BootstrapColumn, ColumnBootstrap, LabelledScore, Roc, auroc, auroc_standard_error_by_cluster, bootstrap,
};

/// The scores of samples by method.
pub struct Comparison<'a> {
    columns: &'a [Column],
    metrics: &'a AuditMetrics,
    /// Of each sample; none of an unlabelled one, and then of no other.
    labels: Vec<bool>,
    /// The cluster of each sample.
    clusters: Vec<usize>,
    /// By method and sample.
    scores: Vec<Vec<Option<f64>>>,
}

impl<'a> Comparison<'a> {
    /// The comparison on these samples, all of them labelled or none.
    pub fn new(columns: &'a [Column], metrics: &'a AuditMetrics, rows: &[&SampleScores]) -> Self {
        let scores = |place: usize| rows.iter().map(|row| row.scores[place]).collect();
        Self {
            columns,
            metrics,
            labels: rows.iter().filter_map(|row| row.member).collect(),
            clusters: clusters(rows.iter().copied()),
            scores: (0..columns.len()).map(scores).collect(),
        }
    }

    /// The methods that the request lists, with what their scores say; of no use once they are not `wanted` any more.
    pub fn findings(&self, wanted: &dyn Fn() -> bool) -> Vec<(&'a LabelledMethod, MethodFindings)> {
        let resampled = self.resampled(wanted);
        let listed = self.columns.iter().enumerate().filter(|(_, column)| column.listed);
        listed.map(|(place, column)| (&column.method, self.finding(place, resampled.get(place)))).collect()
    }

    fn is_labelled(&self) -> bool {
        !self.labels.is_empty()
    }

    /// Empty without labels, or where it was not asked for.
    fn resampled(&self, wanted: &dyn Fn() -> bool) -> Vec<ColumnBootstrap> {
        let Some(settings) = self.metrics.bootstrap.as_ref().filter(|_| self.is_labelled()) else { return Vec::new() };
        let columns = self.columns.iter().zip(&self.scores);
        let columns = columns.map(|(column, scores)| BootstrapColumn { scores, baseline: column.baseline });
        bootstrap(
            &self.labels,
            &self.clusters,
            &columns.collect::<Vec<_>>(),
            &self.metrics.fpr_targets,
            settings,
            wanted,
        )
    }

    fn finding(&self, place: usize, resampled: Option<&ColumnBootstrap>) -> MethodFindings {
        let roc = Roc::new(&self.samples(place, |_| true)).ok();
        MethodFindings {
            scored: self.scores[place].iter().flatten().count(),
            separation: self.is_labelled().then(|| self.separation(place, roc.as_ref())),
            bootstrap: resampled.map(|resampled| resampled.summary.clone()),
            versus_baseline: self.columns[place].baseline.and_then(|base| self.versus(place, base, resampled)),
            roc: roc.filter(|_| self.metrics.roc).map(|roc| roc.points()),
        }
    }

    /// The samples that the method scores, of those for which `taken` holds.
    fn samples(&self, place: usize, taken: impl Fn(usize) -> bool) -> Vec<LabelledScore> {
        let scored = self.labels.iter().zip(&self.scores[place]).enumerate();
        scored
            .filter_map(|(row, (&member, score))| {
                Some(LabelledScore { score: (*score)?, member }).filter(|_| taken(row))
            })
            .collect()
    }

    fn separation(&self, place: usize, roc: Option<&Roc>) -> Separation {
        let confidence = self.metrics.bootstrap.as_ref().map_or(0.95, |bootstrap| bootstrap.confidence);
        let targets = &self.metrics.fpr_targets;
        let points = roc.iter().flat_map(|roc| targets.iter().map(|&fpr| roc.tpr_at_fpr(fpr, confidence)));
        Separation {
            auroc: roc.map(Roc::auroc),
            auroc_standard_error: self.standard_error(place),
            tpr_at_fpr: points.collect(),
            fpr_at_95_tpr: roc.map(Roc::fpr_at_95_tpr),
        }
    }

    /// Of AUROC, by cluster.
    fn standard_error(&self, place: usize) -> Option<f64> {
        let scored = |row: &usize| self.scores[place][*row].is_some();
        let clusters: Vec<usize> = (0..self.labels.len()).filter(scored).map(|row| self.clusters[row]).collect();
        auroc_standard_error_by_cluster(&self.samples(place, |_| true), &clusters)
    }

    /// Against the column `base`, on the samples that both score.
    fn versus(&self, place: usize, base: usize, resampled: Option<&ColumnBootstrap>) -> Option<VersusBaseline> {
        let both = |row: usize| self.scores[place][row].is_some() && self.scores[base][row].is_some();
        let delta = auroc(&self.samples(place, both)).ok()? - auroc(&self.samples(base, both)).ok()?;
        let paired = resampled.and_then(|resampled| resampled.versus_baseline);
        Some(VersusBaseline {
            baseline: self.columns[base].method.label.to_string(),
            delta,
            p_value: paired.and_then(|paired| paired.p_value),
            p_value_raw: paired.and_then(|paired| paired.p_value_raw),
            p_value_adjusted: None,
            interval: paired.and_then(|paired| paired.interval),
        })
    }
}
