//! Whether words tell the texts of an audit from those of its calibration.

use crate::audits::calibrations::Calibration;
use crate::audits::cluster_ids::dense;
use crate::audits::error::AuditFailure;
use crate::audits::evidence::PERMUTATION_SEED;
use crate::audits::results::SampleScores;
use crate::datasets::SampleBlocks;
use crate::scorer::Workers;
use futures::TryStreamExt;
use mia::statistics::{Shift, WordTable, words_baseline};
use std::collections::HashSet;
use std::pin::pin;

/// What the words show; none where the texts of the calibration are not at hand, or are too few. Texts of the calibration that are
/// tested as well are left out of it.
///
/// # Errors
/// [`AuditFailure`] where samples cannot be read.
pub async fn shift_from_calibration(
    samples: &SampleBlocks,
    rows: &[SampleScores],
    calibration: &Calibration,
    workers: &Workers,
) -> Result<Option<Shift>, AuditFailure> {
    let Some(known) = calibration.samples() else { return Ok(None) };
    let tested: HashSet<_> = rows.iter().filter_map(|row| row.normalized).collect();
    let is_known = |row: &SampleScores| row.normalized.is_none_or(|text| !tested.contains(&text));
    let kept: Vec<bool> = calibration.rows().iter().map(is_known).collect();
    let mut words = WordTable::new(rows.len() + kept.iter().filter(|kept| **kept).count());
    let (mut labels, mut clusters) = (Vec::new(), dense(rows.iter().map(|row| row.cluster)));
    let mut texts = pin!(samples.samples());
    while let Some((_, sample)) = texts.try_next().await? {
        words.add(&sample.text);
        labels.push(true);
    }
    let mut texts = pin!(known.samples());
    while let Some((row, sample)) = texts.try_next().await? {
        if kept.get(row) == Some(&true) {
            words.add(&sample.text);
            labels.push(false);
        }
    }
    let first = clusters.iter().max().map_or(0, |last| last + 1);
    let numbers = dense(calibration.rows().iter().map(|row| row.cluster)).into_iter().zip(&kept);
    clusters.extend(numbers.filter(|(_, kept)| **kept).map(|(cluster, _)| first + cluster));
    let fit = move |wanted: &dyn Fn() -> bool| words_baseline(&words, &labels, &clusters, PERMUTATION_SEED, wanted);
    Ok(workers.run_behind(fit).await?.map(|fit| fit.baseline.shift))
}
