//! Scores of known non-members, against which other texts get p-values. Pure.

use crate::audits::calibration_mismatch::CalibrationMismatch;
use crate::audits::cluster_ids::dense;
use crate::audits::results::SampleScores;
use crate::audits::stored_scores::ScoreHeader;
use crate::datasets::SampleBlocks;
use crate::pool::ModelInfo;
use crate::scorer::Overflow;
use mia::methods::LabelledMethod;
use mia::statistics::{CalibrationError, CalibrationScores, ClusteredTexts};
use mia::texts::TextDigest;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Known non-members with their scores.
#[derive(Clone, Debug)]
pub struct Calibration {
    header: Arc<ScoreHeader>,
    rows: Vec<SampleScores>,
    /// The texts, as long as they are kept.
    samples: Option<SampleBlocks>,
    /// Of each row.
    clusters: Vec<usize>,
    /// The cluster of each text, by the digest of its normalized form.
    texts: HashMap<TextDigest, usize>,
    /// Of each column, over all clusters.
    all: Vec<Result<CalibrationScores, CalibrationError>>,
}

impl Calibration {
    /// The scores of a job that scored known non-members, with their texts where they are at hand.
    #[must_use]
    pub fn new(header: Arc<ScoreHeader>, rows: Vec<SampleScores>, samples: Option<SampleBlocks>) -> Self {
        let clusters = dense(rows.iter().map(|row| row.cluster));
        let texts = rows.iter().zip(&clusters).filter_map(|(row, &cluster)| Some((row.normalized?, cluster))).collect();
        let mut calibration = Self { header, rows, samples, clusters, texts, all: Vec::new() };
        let nothing = HashSet::new();
        calibration.all =
            (0..calibration.header.columns.len()).map(|place| calibration.without(place, &nothing)).collect();
        calibration
    }

    /// The place of each method among the columns.
    ///
    /// # Errors
    /// [`CalibrationMismatch`], where scores from there and those from here are not comparable: it names what differs.
    /// `numerics` is what the bits of the scores to compare depend on, as `Bound::numerics` has it.
    pub fn places(
        &self,
        model: &ModelInfo,
        overflow: Overflow,
        numerics: &str,
        methods: &[LabelledMethod],
    ) -> Result<Vec<usize>, CalibrationMismatch> {
        let ScoreHeader { model: calibrated, columns, .. } = &*self.header;
        if calibrated.digest != model.digest {
            return Err(CalibrationMismatch::Model { calibration: calibrated.id.clone(), request: model.id.clone() });
        }
        if calibrated.adapter != model.adapter {
            return Err(CalibrationMismatch::Adapter);
        }
        if self.header.overflow != Some(overflow) {
            return Err(CalibrationMismatch::Overflow);
        }
        let place = |method: &LabelledMethod| {
            let place = columns.iter().position(|column| column.method.method == method.method);
            place.ok_or_else(|| CalibrationMismatch::Method(method.label.to_string()))
        };
        let places: Vec<usize> = methods.iter().map(place).collect::<Result<_, _>>()?;
        let known: HashSet<&str> = self.header.numerics.iter().flat_map(|numerics| numerics.split("; ")).collect();
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
    #[must_use]
    pub fn cluster(&self, normalized: TextDigest) -> Option<usize> {
        self.texts.get(&normalized).copied()
    }

    /// The digest of its samples, as datasets are named; `None` if an earlier version stored it.
    #[must_use]
    pub fn digest(&self) -> Option<&str> {
        self.header.dataset_digest.as_deref()
    }

    /// The cluster of each row.
    #[must_use]
    pub fn clusters(&self) -> &[usize] {
        &self.clusters
    }

    /// The scores of a column, one a cluster: that of the text with the smallest digest, as single texts are compared with them.
    ///
    /// # Errors
    /// [`CalibrationError`], where there are too few.
    pub fn scores(&self, place: usize) -> Result<&CalibrationScores, CalibrationError> {
        self.all[place].as_ref().map_err(Clone::clone)
    }

    /// The same without some clusters.
    pub fn without(&self, place: usize, clusters: &HashSet<usize>) -> Result<CalibrationScores, CalibrationError> {
        let is_kept = |row: &usize| !clusters.contains(&self.clusters[*row]);
        CalibrationScores::new(single_scores(&self.rows, &self.clusters, |row| {
            Some(row).filter(is_kept).and_then(|row| self.rows[row].scores[place])
        }))
    }

    /// Number of scores.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.rows.len() * self.header.columns.len().max(1)
    }

    /// The rows of its texts.
    #[must_use]
    pub fn rows(&self) -> &[SampleScores] {
        &self.rows
    }

    /// The texts, in the order of the rows, as long as they are kept.
    #[must_use]
    pub fn samples(&self) -> Option<&SampleBlocks> {
        self.samples.as_ref()
    }
}

/// The scores of clusters, each by a single one of its scored texts.
pub fn single_scores(rows: &[SampleScores], clusters: &[usize], score: impl Fn(usize) -> Option<f64>) -> Vec<f64> {
    let digests: Vec<TextDigest> = rows.iter().map(|row| row.text).collect();
    let same = vec![0; rows.len()];
    let clustered = ClusteredTexts::new(&vec![false; rows.len()], clusters, &same, &digests);
    clustered
        .scores_over(1, |row| score(row).map(|score| [score]))
        .values
        .into_iter()
        .flatten()
        .map(|[score]| score)
        .collect()
}
