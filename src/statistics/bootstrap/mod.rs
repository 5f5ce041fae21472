//! How much the numbers of an audit would vary with other samples of the same kind (Efron 1979).
//!
//! A replicate draws as many samples as there are, with replacement, and computes everything again; one that draws
//! no sample of a class is discarded and counted. The draws depend on the seed, on the number of the replicate and on
//! which samples have a score, and on nothing else: methods that score the same samples see the same draws, in
//! whatever order they are listed and on however many threads.

mod cohort;
mod draws;
mod ranked;
mod settings;
mod summary;

#[cfg(test)]
mod tests;

pub use settings::Bootstrap;
pub use summary::{BootstrapSummary, PairedBootstrap, Summary, TprSummary};

use cohort::Cohort;
use draws::Draws;

/// The most samples that are resampled: a sample's index shares 32 bits with two flags.
const MOST_SAMPLES: usize = 1 << 30;

/// The scores of one method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BootstrapColumn<'a> {
    /// One for each label. `None`, or a score that is not finite, is a sample that the method could not score.
    pub scores: &'a [Option<f64>],
    /// The column to compare this one with.
    pub baseline: Option<usize>,
}

/// What the replicates of one column say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnBootstrap {
    /// Over the samples that the column scores.
    pub summary: BootstrapSummary,
    /// Over the samples that the column and its baseline score; absent without a baseline, or if those samples are
    /// of one class.
    pub versus_baseline: Option<PairedBootstrap>,
}

/// Resamples `columns`, whose samples are members as `labels` says, and summarises each, in order.
///
/// The true positive rates are those at `fpr_targets`, by the rule of [`super::Roc::tpr_at_fpr`] with the budget of the
/// replicate's own non-members. Of more than 2^30 samples there are no replicates: all of them count as discarded.
/// Stops early, with what there is, once it is not `wanted` any more. Runs on rayon's pool; O(n log n) for each column and O(n) for each of its replicates.
pub fn bootstrap(
    labels: &[bool],
    columns: &[BootstrapColumn],
    fpr_targets: &[f64],
    settings: &Bootstrap,
    wanted: &dyn Fn() -> bool,
) -> Vec<ColumnBootstrap> {
    let draws = Draws::Seeded { replicates: settings.replicates, seed: settings.seed };
    resample(labels, columns, fpr_targets, settings.confidence, &draws, wanted)
}

/// The same as [`bootstrap`] with replicates that are given: each is a list of indices of samples.
///
/// An index of a sample that a column does not score, or that there is not, draws nothing for that column.
pub fn bootstrap_listed(
    labels: &[bool],
    columns: &[BootstrapColumn],
    fpr_targets: &[f64],
    confidence: f64,
    replicates: &[Vec<u32>],
) -> Vec<ColumnBootstrap> {
    resample(labels, columns, fpr_targets, confidence, &Draws::Listed(replicates), &|| true)
}

fn resample(
    labels: &[bool],
    columns: &[BootstrapColumn],
    fpr_targets: &[f64],
    confidence: f64,
    draws: &Draws,
    wanted: &dyn Fn() -> bool,
) -> Vec<ColumnBootstrap> {
    let labels = if labels.len() > MOST_SAMPLES { &[] } else { labels };
    let mut results = vec![ColumnBootstrap::default(); columns.len()];
    // One cohort after the other, so that the replicates of one alone are in memory.
    for cohort in Cohort::all(labels, columns) {
        let replicates = cohort.replicates(labels, columns, fpr_targets, draws, wanted);
        for &column in cohort.summaries.iter().take_while(|_| wanted()) {
            results[column].summary = replicates.summary(&cohort, column, fpr_targets, confidence);
        }
        for &(column, baseline) in cohort.pairs.iter().take_while(|_| wanted()) {
            results[column].versus_baseline = replicates.paired(&cohort, column, baseline, confidence);
        }
    }
    results
}
