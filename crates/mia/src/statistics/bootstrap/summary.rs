//! The summary statistics of the replicates.

use serde::Serialize;
use utoipa::ToSchema;

/// The scores of one method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BootstrapColumn<'a> {
    /// One for each label. `None`, or a score that is not finite, is a sample that the method could not score.
    pub scores: &'a [Option<f64>],
    /// The index of the column to compare this one with.
    pub baseline: Option<usize>,
}

/// The bootstrap of one column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnBootstrap {
    /// Over the samples that the column scores.
    pub summary: BootstrapSummary,
    /// Over the samples that both the column and its baseline score; absent without a baseline, or if those samples are
    /// all of one class.
    pub versus_baseline: Option<PairedBootstrap>,
}

/// Variation of a statistic over the replicates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub struct Summary {
    pub mean: f64,
    /// Population standard deviation of the replicates: divided by their number, not by one less.
    pub standard_deviation: f64,
    /// The percentiles that exclude the same share on either side; 2.5 and 97.5 at a confidence of 0.95. Interpolated
    /// linearly between neighbouring replicates.
    pub interval: [f64; 2],
}

/// Variation of the true positive rate at one target over the replicates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub struct TprSummary {
    /// The target of the false positive rate.
    pub fpr: f64,
    #[serde(flatten)]
    pub summary: Summary,
}

/// The bootstrap statistics of one method.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct BootstrapSummary {
    /// Area under the ROC curve; null if every replicate was discarded.
    pub auroc: Option<Summary>,
    /// In the order of the targets; empty if every replicate was discarded.
    pub tpr_at_fpr: Vec<TprSummary>,
    /// Replicates that drew no member or no non-member.
    pub discarded: usize,
}

/// The comparison of a method with its baseline, both computed from the same draws.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub struct PairedBootstrap {
    /// AUROC of the method minus AUROC of its baseline, over the samples that both score.
    pub delta: f64,
    /// `(1 + r) / (1 + N)`, with N the replicates kept and r those in which the method does no better than its
    /// baseline: one-sided, and never 0. Null if every replicate was discarded.
    pub p_value: Option<f64>,
    /// `r / N`.
    pub p_value_raw: Option<f64>,
    /// The percentiles of the difference.
    pub interval: Option<[f64; 2]>,
    /// Replicates that drew no member or no non-member.
    pub discarded: usize,
}

/// The values of the replicates of one cohort: for each of its columns the AUROC, then the rate at each target.
pub(super) struct Replicates {
    /// `None` if a class was not drawn.
    pub rows: Vec<Option<Box<[f64]>>>,
    /// The values of the original samples.
    pub observed: Option<Box<[f64]>>,
    /// The columns, in the order of their values in a row.
    pub columns: Vec<usize>,
    pub targets: usize,
}

impl Replicates {
    pub fn summary(&self, column: usize, fpr_targets: &[f64], confidence: f64) -> BootstrapSummary {
        let first = self.first_value(column);
        let summarise = |index: usize| summary(self.kept(|row| row[index]), confidence);
        let tpr_at_fpr = fpr_targets.iter().zip(first + 1..);
        BootstrapSummary {
            auroc: summarise(first),
            tpr_at_fpr: tpr_at_fpr
                .filter_map(|(&fpr, index)| Some(TprSummary { fpr, summary: summarise(index)? }))
                .collect(),
            discarded: self.discarded(),
        }
    }

    pub fn paired(&self, column: usize, base: usize, confidence: f64) -> Option<PairedBootstrap> {
        let (column, base) = (self.first_value(column), self.first_value(base));
        // Both areas are integers over the same integer, so equal ones have a difference of exactly 0.
        let delta = |row: &[f64]| row[column] - row[base];
        let deltas = self.kept(delta);
        let no_better = deltas.iter().filter(|&&delta| delta <= 0.0).count() as f64;
        let kept = deltas.len() as f64;
        let interval = summary(deltas, confidence).map(|summary| summary.interval);
        Some(PairedBootstrap {
            delta: delta(self.observed.as_ref()?),
            p_value: interval.map(|_| (1.0 + no_better) / (1.0 + kept)),
            p_value_raw: interval.map(|_| no_better / kept),
            interval,
            discarded: self.discarded(),
        })
    }

    /// The index of a column's first value in a row.
    fn first_value(&self, column: usize) -> usize {
        self.columns.iter().take_while(|&&other| other != column).count() * (1 + self.targets)
    }

    /// In the order of the replicates, so that sums are rounded in the same way on any number of threads.
    fn kept(&self, value: impl Fn(&[f64]) -> f64) -> Vec<f64> {
        self.rows.iter().flatten().map(|row| value(row)).collect()
    }

    fn discarded(&self) -> usize {
        self.rows.iter().filter(|row| row.is_none()).count()
    }
}

/// `None` if there are no values.
fn summary(mut values: Vec<f64>, confidence: f64) -> Option<Summary> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    values.sort_unstable_by(f64::total_cmp);
    // A confidence of NaN excludes nothing.
    let tail = ((1.0 - confidence) / 2.0).max(0.0);
    let interval = [quantile(&values, tail)?, quantile(&values, 1.0 - tail)?];
    Some(Summary { mean, standard_deviation: variance.sqrt(), interval })
}

/// The value below which `share` of `ascending` lies, interpolated linearly: type 7 of Hyndman and Fan 1996.
fn quantile(ascending: &[f64], share: f64) -> Option<f64> {
    let position = share.clamp(0.0, 1.0) * ascending.len().checked_sub(1)? as f64;
    let below = *ascending.get(position as usize)?;
    let above = ascending.get(position as usize + 1).copied().unwrap_or(below);
    Some(below + (above - below) * position.fract())
}
