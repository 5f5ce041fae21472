//! Calibrations: known non-members are scored once, and scores of other texts get p-values against them.

use super::clusters::{clusters, list_scores, next_cluster};
use super::columns::Column;
use super::error::{AuditError, AuditFailure, CalibrationMismatch};
use super::request::AuditRequest;
use super::results::{AuditResults, SampleScores};
use super::run_event::RunEvent;
use super::sample_scoring::{ScoredSamples, score_samples};
use super::shared_text::add_ngrams;
use super::stored_scores::{LoadedScores, ScoreHeader, StoredScores};
use crate::datasets::SampleBlocks;
use crate::pool::ModelInfo;
use crate::scorer::{Overflow, Scorer};
use crate::store::Store;
use mia::methods::LabelledMethod;
use mia::statistics::{CalibrationError, CalibrationScores, ClusteredTexts};
use mia::texts::TextDigest;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use utoipa::ToSchema;
use uuid::Uuid;

/// Known non-members with their scores.
#[derive(Clone, Debug)]
pub struct Calibration {
    scores: LoadedScores,
    /// The texts, as long as they are kept.
    samples: Option<SampleBlocks>,
    /// The cluster of each row.
    clusters: Vec<usize>,
    /// The cluster of each text, by the digest of its normalized form.
    texts: HashMap<TextDigest, usize>,
    /// Of each column, over all clusters.
    all: Vec<Result<CalibrationScores, CalibrationError>>,
}

impl Calibration {
    /// `samples` are the texts, where they are at hand.
    pub(super) fn new(scores: LoadedScores, samples: Option<SampleBlocks>) -> Self {
        let clusters = clusters(&scores.rows);
        let texts = (scores.rows.iter().zip(&clusters))
            .filter_map(|(row, &cluster)| Some((row.normalized?, cluster)))
            .collect();
        let all = (0..scores.header.columns.len())
            .map(|place| {
                CalibrationScores::new(single_scores(&scores.rows, &clusters, |row| scores.rows[row].scores[place]))
            })
            .collect();
        Self { scores, samples, clusters, texts, all }
    }

    /// Reads the calibration of this id; returns `None` if there is none that has succeeded.
    pub async fn load(store: &Store, id: Uuid) -> Result<Option<Self>, AuditError> {
        let Some(stored) = StoredScores::open(store, id).await? else { return Ok(None) };
        let scores = stored.load().await?;
        let samples = store.dataset_of(id).await?.and_then(|dataset| SampleBlocks::stored(store, &dataset));
        Ok(Some(Self::new(scores, samples)))
    }

    /// The place of each method among the columns.
    /// `numerics` is what the bits of the scores to compare depend on, as `Bound::numerics` has it.
    pub fn places(
        &self,
        model: &ModelInfo,
        overflow: Overflow,
        numerics: &str,
        methods: &[LabelledMethod],
    ) -> Result<Vec<usize>, CalibrationMismatch> {
        let ScoreHeader { model: calibrated, columns, .. } = &*self.scores.header;
        if calibrated.digest != model.digest {
            return Err(CalibrationMismatch::Model { calibration: calibrated.id.clone(), request: model.id.clone() });
        }
        if calibrated.adapter != model.adapter {
            return Err(CalibrationMismatch::Adapter);
        }
        if self.scores.header.overflow != Some(overflow) {
            return Err(CalibrationMismatch::Overflow);
        }
        let place = |method: &LabelledMethod| {
            let place = columns.iter().position(|column| column.method.method == method.method);
            place.ok_or_else(|| CalibrationMismatch::Method(method.label.to_string()))
        };
        let places: Vec<usize> = methods.iter().map(place).collect::<Result<_, _>>()?;
        let known: HashSet<&str> =
            self.scores.header.numerics.iter().flat_map(|numerics| numerics.split("; ")).collect();
        if !numerics.split("; ").all(|part| known.contains(part)) {
            return Err(CalibrationMismatch::Numerics);
        }
        let too_few = places.iter().zip(methods).find_map(|(&place, method)| {
            let error = self.all[place].as_ref().err()?;
            Some(CalibrationMismatch::Scores { label: method.label.to_string(), error: *error })
        });
        too_few.map_or(Ok(places), Err)
    }

    /// The cluster of a text, where it or one that equals it but for case and white space is in the calibration.
    pub fn cluster(&self, normalized: TextDigest) -> Option<usize> {
        self.texts.get(&normalized).copied()
    }

    /// The digest of its samples, as datasets are named; `None` if an earlier version stored it.
    pub fn digest(&self) -> Option<&str> {
        self.scores.header.dataset_digest.as_deref()
    }

    /// The distance of the n-grams that its rows keep; `None` if an earlier version stored it.
    pub fn ngram_step(&self) -> Option<usize> {
        self.scores.header.ngram_step
    }

    /// The number of its clusters, without the rows that are left out.
    pub fn clusters_without(&self, left_out: Option<&HashSet<usize>>) -> usize {
        let is_kept = |row: &usize| left_out.is_none_or(|left_out| !left_out.contains(row));
        let kept = self.clusters.iter().enumerate().filter(|(row, _)| is_kept(row));
        kept.map(|(_, cluster)| cluster).collect::<HashSet<_>>().len()
    }

    pub fn clusters(&self) -> &[usize] {
        &self.clusters
    }

    /// The scores of a column, one a cluster: that of the text with the smallest digest, as single texts are compared with them.
    pub fn scores(&self, place: usize) -> Result<&CalibrationScores, CalibrationError> {
        self.all[place].as_ref().map_err(Clone::clone)
    }

    /// The same without some clusters.
    pub fn without(&self, place: usize, clusters: &HashSet<usize>) -> Result<CalibrationScores, CalibrationError> {
        let rows = &self.scores.rows;
        let score = |row: usize| rows[row].scores[place].filter(|_| !clusters.contains(&self.clusters[row]));
        CalibrationScores::new(single_scores(rows, &self.clusters, score))
    }

    /// Number of scores.
    pub fn weight(&self) -> usize {
        self.scores.rows.len() * self.scores.header.columns.len().max(1)
    }

    /// The rows of its texts.
    pub fn rows(&self) -> &[SampleScores] {
        &self.scores.rows
    }

    /// The texts, in the order of the rows, as long as they are kept.
    pub fn samples(&self) -> Option<&SampleBlocks> {
        self.samples.as_ref()
    }
}

/// The scores of clusters, each by a single one of its scored texts.
fn single_scores(rows: &[SampleScores], clusters: &[usize], score: impl Fn(usize) -> Option<f64>) -> Vec<f64> {
    let digests: Vec<TextDigest> = rows.iter().map(|row| row.text).collect();
    let clustered = ClusteredTexts::new(&vec![false; rows.len()], clusters, &vec![0; rows.len()], &digests);
    list_scores(&clustered.scores_over(1, |row| score(row).map(|score| [score])), &clustered, false)
}

/// Scores known non-members by the methods of the request at once, without a job.
pub async fn calibrate(
    request: &AuditRequest,
    samples: SampleBlocks,
    scorer: &Scorer,
    progress: impl Fn(RunEvent),
) -> Result<Calibration, AuditFailure> {
    let results = score_known(request, &samples, scorer, progress).await?;
    let header = ScoreHeader::from(&results).into();
    Ok(Calibration::new(LoadedScores { header, rows: results.rows }, Some(samples)))
}

/// Scores known non-members, and keeps of the works among them what recognises text that other works share.
pub async fn score_known(
    request: &AuditRequest,
    samples: &SampleBlocks,
    scorer: &Scorer,
    progress: impl Fn(RunEvent),
) -> Result<AuditResults, AuditFailure> {
    let ScoredSamples { mut results, .. } = score_samples(request, samples, scorer, progress).await?;
    add_ngrams(&mut results, samples, scorer.workers()).await?;
    Ok(results)
}

/// Report of a calibration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CalibrationReport {
    /// One entry per method, in the order of the request.
    pub methods: Vec<CalibratedMethod>,
    /// Clusters of texts.
    pub clusters: usize,
    /// Forward passes, and those answered from the cache.
    pub forward_passes: usize,
    pub cached_passes: usize,
}

/// Resolution of the p-values of a method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CalibratedMethod {
    pub label: String,
    /// Texts that have a score; absent until they are scored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<usize>,
    /// Clusters of them; with fewer than 19 there are no p-values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<usize>,
    /// The smallest p-value that is possible, 1 / (clusters + 1); absent where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolution: Option<f64>,
}

impl CalibratedMethod {
    /// A method known only by its label.
    pub fn unknown(label: String) -> Self {
        Self { label, size: None, clusters: None, resolution: None }
    }
}

pub fn calibration_report(results: &AuditResults) -> CalibrationReport {
    let clusters = clusters(&results.rows);
    let method = |(place, column): (usize, &Column)| {
        let scores = single_scores(&results.rows, &clusters, |row| results.rows[row].scores[place]);
        CalibratedMethod {
            label: column.method.label.to_string(),
            size: Some(results.rows.iter().filter(|row| row.scores[place].is_some()).count()),
            clusters: Some(scores.len()),
            resolution: CalibrationScores::new(scores).ok().map(|scores| scores.resolution()),
        }
    };
    CalibrationReport {
        methods: results.listed().map(method).collect(),
        clusters: next_cluster(&clusters),
        forward_passes: results.usage.forward_passes,
        cached_passes: results.usage.cached_passes,
    }
}
