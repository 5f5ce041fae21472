//! What the scores of some samples say of each method: pure.

use super::{MethodFindings, Separation, VersusBaseline};
use crate::jobs::run::{Column, SampleScores};
use crate::jobs::spec::Metrics;
use crate::methods::LabelledMethod;
use crate::statistics::{BootstrapColumn, ColumnBootstrap, LabelledScore, Roc, auroc, bootstrap};

/// The scores of samples by method.
pub struct Table<'a> {
    columns: &'a [Column],
    metrics: &'a Metrics,
    /// Of each sample; none of an unlabelled one, and then of no other.
    labels: Vec<bool>,
    /// By method and sample.
    scores: Vec<Vec<Option<f64>>>,
}

impl<'a> Table<'a> {
    /// The table of these samples, all of them labelled or none.
    pub fn new(columns: &'a [Column], metrics: &'a Metrics, rows: &[&SampleScores]) -> Self {
        let of = |at: usize| rows.iter().map(|row| row.scores[at]).collect();
        Self {
            columns,
            metrics,
            labels: rows.iter().filter_map(|row| row.member).collect(),
            scores: (0..columns.len()).map(of).collect(),
        }
    }

    /// The methods that the request lists, with what their scores say; of no use once they are not `wanted` any more.
    pub fn findings(&self, wanted: &dyn Fn() -> bool) -> Vec<(&'a LabelledMethod, MethodFindings)> {
        let resampled = self.resampled(wanted);
        let listed = self.columns.iter().enumerate().filter(|(_, column)| column.listed);
        listed.map(|(at, column)| (&column.method, self.finding(at, resampled.get(at)))).collect()
    }

    fn is_labelled(&self) -> bool {
        !self.labels.is_empty()
    }

    /// Empty without labels, or where it was not asked for.
    fn resampled(&self, wanted: &dyn Fn() -> bool) -> Vec<ColumnBootstrap> {
        let Some(settings) = self.metrics.bootstrap.as_ref().filter(|_| self.is_labelled()) else { return Vec::new() };
        let columns = self.columns.iter().zip(&self.scores);
        let columns = columns.map(|(column, scores)| BootstrapColumn { scores, baseline: column.baseline });
        bootstrap(&self.labels, &columns.collect::<Vec<_>>(), &self.metrics.fpr_targets, settings, wanted)
    }

    fn finding(&self, at: usize, resampled: Option<&ColumnBootstrap>) -> MethodFindings {
        let roc = Roc::new(&self.samples(at, |_| true)).ok();
        MethodFindings {
            scored: self.scores[at].iter().flatten().count(),
            separation: self.is_labelled().then(|| self.separation(roc.as_ref())),
            bootstrap: resampled.map(|resampled| resampled.summary.clone()),
            versus_baseline: self.columns[at].baseline.and_then(|base| self.versus(at, base, resampled)),
            roc: roc.filter(|_| self.metrics.roc).map(|roc| roc.points()),
        }
    }

    /// The samples that the method scores, of those for which `taken` holds.
    fn samples(&self, at: usize, taken: impl Fn(usize) -> bool) -> Vec<LabelledScore> {
        let scored = self.labels.iter().zip(&self.scores[at]).enumerate();
        scored
            .filter_map(|(row, (&member, score))| {
                Some(LabelledScore { score: (*score)?, member }).filter(|_| taken(row))
            })
            .collect()
    }

    fn separation(&self, roc: Option<&Roc>) -> Separation {
        let confidence = self.metrics.bootstrap.as_ref().map_or(0.95, |bootstrap| bootstrap.confidence);
        let targets = &self.metrics.fpr_targets;
        let points = roc.iter().flat_map(|roc| targets.iter().map(|&fpr| roc.tpr_at_fpr_with(fpr, confidence)));
        Separation {
            auroc: roc.map(Roc::auroc),
            auroc_standard_error: roc.and_then(Roc::auroc_standard_error),
            tpr_at_fpr: points.collect(),
            fpr_at_95_tpr: roc.map(Roc::fpr_at_95_tpr),
        }
    }

    /// Against the column `base`, on the samples that both score.
    fn versus(&self, at: usize, base: usize, resampled: Option<&ColumnBootstrap>) -> Option<VersusBaseline> {
        let both = |row: usize| self.scores[at][row].is_some() && self.scores[base][row].is_some();
        let delta = auroc(&self.samples(at, both)).ok()? - auroc(&self.samples(base, both)).ok()?;
        let paired = resampled.and_then(|resampled| resampled.versus_baseline);
        Some(VersusBaseline {
            baseline: self.columns[base].method.label.to_string(),
            delta,
            p_value: paired.and_then(|paired| paired.p_value),
            p_value_raw: paired.and_then(|paired| paired.p_value_raw),
            interval: paired.and_then(|paired| paired.interval),
        })
    }
}
