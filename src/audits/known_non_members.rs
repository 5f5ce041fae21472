//! The known non-members of an audit: those of a calibration, or a share of its own.

use super::calibrations::Calibration;
use super::clusters::{clusters, next_cluster};
use super::error::{AuditFailure, CalibrationMismatch};
use super::evidence::CalibrationShare;
use super::results::{AuditResults, SampleScores};
use super::sample_index::fold_samples;
use super::shared_text::SharedText;
use super::text_lists::{SampleTexts, TextLists};
use crate::datasets::{Sample, SampleBlocks, SampleId};
use crate::scorer::Workers;
use indexmap::IndexSet;
use mia::methods::LabelledMethod;
use mia::random::{shuffle, stream};
use mia::statistics::{ClusteredTexts, Comparability};
use mia::texts::TextDigest;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// A calibration, and what its works share with those that are tested.
pub struct KnownWorks {
    pub calibration: Calibration,
    /// `None` where the calibration has no works.
    pub shared: Option<SharedText>,
}

impl KnownWorks {
    /// Rows of the calibration, and of the audit, that are left out for text that both have.
    fn left_out(&self) -> [HashSet<usize>; 2] {
        self.shared.as_ref().map(|shared| [shared.known.clone(), shared.tested.clone()]).unwrap_or_default()
    }
}

/// Texts that are tested, and known non-members, with the scores of each listed method.
pub struct KnownNonMembers {
    /// The texts tested, then the known non-members.
    pub texts: Vec<ListedText>,
    /// The number of texts tested; those before it are tested.
    pub tested: usize,
    /// Their clusters. Those of the texts tested have the label `true`.
    pub clustered: ClusteredTexts,
    /// Clusters of known non-members that are tested as well, and do not count as known.
    pub overlap: usize,
    /// Documents that these clusters are of.
    pub overlapping_documents: Vec<String>,
}

/// A text of either list.
pub struct ListedText {
    /// The row of the audit; `None` for a text of a calibration.
    pub row: Option<usize>,
    /// Among all clusters of both lists.
    pub cluster: usize,
    pub scored_tokens: usize,
    /// One place for each listed method.
    pub scores: Vec<Option<f64>>,
    digest: TextDigest,
}

impl ListedText {
    fn new(row: Option<usize>, cluster: usize, scored: &SampleScores, places: &[usize]) -> Self {
        let scores = places.iter().map(|&place| scored.scores[place]).collect();
        Self { row, cluster, scored_tokens: scored.scored_tokens, scores, digest: scored.text }
    }

    /// The texts of an audit, whose rows have these clusters.
    fn all(results: &AuditResults, clusters: &[usize]) -> Vec<Self> {
        let listed: Vec<usize> = results.listed().map(|(place, _)| place).collect();
        let text = |(row, (scored, &cluster))| Self::new(Some(row), cluster, scored, &listed);
        results.rows.iter().zip(clusters).enumerate().map(text).collect()
    }
}

impl KnownNonMembers {
    /// Those of a calibration, without what is tested as well.
    pub fn stored(known: &KnownWorks, results: &AuditResults) -> Result<Self, CalibrationMismatch> {
        let calibration = &known.calibration;
        let [known_left_out, tested_left_out] = known.left_out();
        let methods: Vec<LabelledMethod> = results.listed().map(|(_, column)| column.method.clone()).collect();
        let places = calibration.places(&results.model, results.overflow, &results.numerics, &methods)?;
        let overlap: HashSet<usize> =
            results.rows.iter().filter_map(|row| calibration.cluster(row.normalized?)).collect();
        let is_tested = |(_, cluster): &(&SampleScores, &usize)| overlap.contains(cluster);
        let documents = calibration.rows().iter().zip(calibration.clusters()).filter(is_tested);
        let documents: IndexSet<String> =
            documents.filter_map(|(scored, _)| scored.document.as_ref().map(SampleId::to_string)).collect();
        let clusters = clusters(&results.rows);
        let first = next_cluster(&clusters);
        let known = (calibration.rows().iter().zip(calibration.clusters()))
            .enumerate()
            .filter(|(row, (_, cluster))| !overlap.contains(cluster) && !known_left_out.contains(row))
            .map(|(_, (scored, cluster))| ListedText::new(None, first + cluster, scored, &places));
        let mut tested = ListedText::all(results, &clusters);
        // They stay among the texts tested, without a score that is compared.
        tested_left_out.iter().for_each(|&row| tested[row].scores.fill(None));
        let all = Self::new(tested, known.collect());
        Ok(Self { overlap: overlap.len(), overlapping_documents: documents.into_iter().collect(), ..all })
    }

    /// A share of the clusters of the audit that have non-members alone, rounded.
    pub fn drawn(share: CalibrationShare, results: &AuditResults) -> Self {
        let clusters = clusters(&results.rows);
        let mut unknown: BTreeMap<usize, bool> = BTreeMap::new();
        for (row, &cluster) in results.rows.iter().zip(&clusters) {
            *unknown.entry(cluster).or_default() |= row.member != Some(false);
        }
        let mut known: Vec<usize> =
            unknown.into_iter().filter_map(|(cluster, unknown)| (!unknown).then_some(cluster)).collect();
        shuffle(&mut known, &mut stream(share.seed, "calibration share"));
        let count = (known.len() as f64 * share.share).round() as usize;
        let drawn: HashSet<usize> = known.into_iter().take(count).collect();
        let all = ListedText::all(results, &clusters).into_iter();
        let (known, tested): (Vec<ListedText>, Vec<ListedText>) = all.partition(|text| drawn.contains(&text.cluster));
        Self::new(tested, known)
    }

    fn new(tested: Vec<ListedText>, known: Vec<ListedText>) -> Self {
        let count = tested.len();
        let texts: Vec<ListedText> = tested.into_iter().chain(known).collect();
        let labels: Vec<bool> = (0..texts.len()).map(|place| place < count).collect();
        let clusters: Vec<usize> = texts.iter().map(|text| text.cluster).collect();
        let digests: Vec<TextDigest> = texts.iter().map(|text| text.digest).collect();
        let clustered = ClusteredTexts::new(&labels, &clusters, &vec![0; texts.len()], &digests);
        Self { texts, tested: count, clustered, overlap: 0, overlapping_documents: Vec::new() }
    }

    /// The numbers of scored tokens of the texts tested, and of the known non-members.
    pub fn lengths(&self) -> [Vec<f64>; 2] {
        let (tested, known) = self.texts.split_at(self.tested);
        [tested, known].map(|texts| texts.iter().map(|text| text.scored_tokens as f64).collect())
    }
}

/// Compares the texts by a classifier that knows only the texts. Returns `None` if those of the calibration are unavailable or
/// too few. Texts of the calibration that are tested as well are left out.
pub async fn comparability_with_calibration(
    samples: &SampleBlocks,
    rows: &[SampleScores],
    known: &KnownWorks,
    workers: &Workers,
) -> Result<Option<Comparability>, AuditFailure> {
    let calibration = &known.calibration;
    let [left_out, _] = known.left_out();
    let Some(known) = calibration.samples() else { return Ok(None) };
    let tested: HashSet<_> = rows.iter().filter_map(|row| row.normalized).collect();
    let is_untested = |row: &SampleScores| row.normalized.is_none_or(|text| !tested.contains(&text));
    let is_known = |(place, row): (usize, &SampleScores)| is_untested(row) && !left_out.contains(&place);
    let kept: Arc<[bool]> = calibration.rows().iter().enumerate().map(is_known).collect();
    let known_rows = || calibration.rows().iter().zip(calibration.clusters()).zip(&*kept).filter(|(_, kept)| **kept);
    let all: Vec<&SampleScores> = rows.iter().chain(known_rows().map(|((row, _), _)| row)).collect();
    let texts = SampleTexts::new(all.iter().map(|row| row.text), samples.are_retained() && known.are_retained());
    let texts = fold_samples(samples, workers, texts, |texts, chunk| Ok(texts.with(&chunk, |_| true)), |_| {}).await?;
    let is_kept = Arc::clone(&kept);
    let add = move |texts: SampleTexts, chunk: Vec<(usize, Sample)>| {
        Ok(texts.with(&chunk, |row| is_kept.get(row) == Some(&true)))
    };
    let texts = fold_samples(known, workers, texts, add, |_| {}).await?;
    let mut clusters = clusters(rows);
    let first = next_cluster(&clusters);
    clusters.extend(known_rows().map(|((_, cluster), _)| first + cluster));
    let labels: Vec<bool> = (0..all.len()).map(|place| place < rows.len()).collect();
    let lists = TextLists::new(&all, &labels, &clusters, &vec![0; labels.len()], &texts);
    let fit = move |wanted: &dyn Fn() -> bool| lists.comparability(&lists.fit(&texts, wanted)?, &texts, |_| true);
    Ok(workers.run_behind(fit).await?)
}
