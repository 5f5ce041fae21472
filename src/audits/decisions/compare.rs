//! Comparability of the texts of an audit with those of its calibration.

use crate::audits::calibrations::Calibration;
use crate::audits::cluster_ids::dense;
use crate::audits::error::AuditFailure;
use crate::audits::results::SampleScores;
use crate::audits::text_lists::{SampleTexts, TextLists};
use crate::datasets::SampleBlocks;
use crate::scorer::Workers;
use futures::StreamExt;
use mia::statistics::Comparability;
use std::collections::HashSet;
use std::pin::pin;

/// Texts that are measured together.
const CHUNK: usize = 512;

/// Compares the texts by a classifier that knows only the texts. Returns `None` if those of the calibration are unavailable or
/// too few. Texts of the calibration that are tested as well are left out.
///
/// # Errors
/// [`AuditFailure`] where samples cannot be read.
pub async fn comparability_with_calibration(
    samples: &SampleBlocks,
    rows: &[SampleScores],
    calibration: &Calibration,
    workers: &Workers,
) -> Result<Option<Comparability>, AuditFailure> {
    let Some(known) = calibration.samples() else { return Ok(None) };
    let tested: HashSet<_> = rows.iter().filter_map(|row| row.normalized).collect();
    let kept: Vec<bool> =
        (calibration.rows().iter()).map(|row| row.normalized.is_none_or(|text| !tested.contains(&text))).collect();
    let all: Vec<&SampleScores> = rows
        .iter()
        .chain(calibration.rows().iter().zip(&kept).filter(|(_, kept)| **kept).map(|(row, _)| row))
        .collect();
    let mut texts = SampleTexts::new(all.iter().map(|row| row.text), samples.are_retained() && known.are_retained());
    for (list, is_known) in [(samples, false), (known, true)] {
        let mut chunks = pin!(list.samples().ready_chunks(CHUNK));
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.into_iter().collect::<Result<Vec<_>, _>>()?;
            let is_kept = |row: usize| !is_known || kept.get(row) == Some(&true);
            let read: Vec<String> =
                chunk.into_iter().filter(|(row, _)| is_kept(*row)).map(|(_, sample)| sample.text.to_string()).collect();
            texts = workers
                .run_behind(move |_| {
                    texts.extend(&read.iter().map(String::as_str).collect::<Vec<_>>());
                    texts
                })
                .await?;
        }
    }
    let mut clusters = dense(rows.iter().map(|row| row.cluster));
    let first = clusters.iter().max().map_or(0, |last| last + 1);
    let known_clusters = calibration.clusters().iter().zip(&kept).filter(|(_, kept)| **kept);
    clusters.extend(known_clusters.map(|(cluster, _)| first + cluster));
    let labels: Vec<bool> = (0..all.len()).map(|place| place < rows.len()).collect();
    let lists = TextLists::new(&all, &labels, &clusters, &vec![0; labels.len()], &texts);
    let fit = move |wanted: &dyn Fn() -> bool| lists.comparability(&lists.fit(&texts, wanted)?, &texts, |_| true);
    Ok(workers.run_behind(fit).await?)
}
