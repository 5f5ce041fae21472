//! Bootstrap (Efron 1979) of the statistics of an audit: their variation over other samples of the same kind.
//!
//! A replicate draws as many clusters of samples as there are, with replacement, and recomputes everything; a replicate
//! without any sample of a class is discarded and counted. The draws depend only on the seed, on the number of the
//! replicate, on which samples have a score and on their clusters: methods that score the same samples use the same
//! draws, in whatever order they are listed and on any number of threads.

mod cohort;
mod draws;
mod ranked;
mod settings;
mod summary;

#[cfg(test)]
mod tests;

pub use settings::Bootstrap;
pub use summary::{BootstrapColumn, BootstrapSummary, ColumnBootstrap, PairedBootstrap, Summary, TprSummary};

use cohort::Cohort;
use draws::Draws;

/// The maximum number of samples that are resampled: a sample's index shares 32 bits with two flags.
const MOST_SAMPLES: usize = 1 << 30;

/// Resamples `columns`, where `labels` tells which samples are members, and summarises each column, in order.
///
/// Samples are of one cluster if their entries in `clusters` are equal, and are then drawn together: a replicate draws
/// as many clusters as have a sample that the column scores. A sample without an entry is a cluster by itself, so an
/// empty slice stands for independent samples.
///
/// The true positive rates are those at `fpr_targets`, by the rule of [`super::Roc::tpr_at_fpr`] with the budget of the
/// replicate's own non-members. For more than 2^30 samples there are no replicates: all of them count as discarded.
/// Stops early, with incomplete results, once `keep_going` returns false. Runs on rayon's pool; O(n log n) for each
/// column and O(n) for each of its replicates.
pub fn bootstrap(
    labels: &[bool],
    clusters: &[usize],
    columns: &[BootstrapColumn],
    fpr_targets: &[f64],
    settings: &Bootstrap,
    keep_going: &dyn Fn() -> bool,
) -> Vec<ColumnBootstrap> {
    let draws = Draws::Seeded { replicates: settings.replicates, seed: settings.seed };
    resample(labels, clusters, columns, fpr_targets, settings.confidence, &draws, keep_going)
}

/// Like [`bootstrap`] with given replicates, each of which is a list of sample indices.
///
/// An index of a sample that a column does not score, or that does not exist, draws nothing for that column.
pub fn bootstrap_listed(
    labels: &[bool],
    columns: &[BootstrapColumn],
    fpr_targets: &[f64],
    confidence: f64,
    replicates: &[Vec<u32>],
) -> Vec<ColumnBootstrap> {
    resample(labels, &[], columns, fpr_targets, confidence, &Draws::Listed(replicates), &|| true)
}

fn resample(
    labels: &[bool],
    clusters: &[usize],
    columns: &[BootstrapColumn],
    fpr_targets: &[f64],
    confidence: f64,
    draws: &Draws,
    keep_going: &dyn Fn() -> bool,
) -> Vec<ColumnBootstrap> {
    let labels = if labels.len() > MOST_SAMPLES { &[] } else { labels };
    let mut results = vec![ColumnBootstrap::default(); columns.len()];
    // One cohort after another, so that only the replicates of one are in memory.
    for cohort in Cohort::all(labels, columns) {
        let replicates = cohort.replicates(labels, clusters, columns, fpr_targets, draws, keep_going);
        for &column in cohort.summaries.iter().take_while(|_| keep_going()) {
            results[column].summary = replicates.summary(column, fpr_targets, confidence);
        }
        for &(column, baseline) in cohort.pairs.iter().take_while(|_| keep_going()) {
            results[column].versus_baseline = replicates.paired(column, baseline, confidence);
        }
    }
    results
}
