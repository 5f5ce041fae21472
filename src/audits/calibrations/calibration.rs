//! Scores of known non-members, against which other texts get p-values. Pure.

use crate::audits::calibration_mismatch::CalibrationMismatch;
use crate::audits::cluster_ids::dense;
use crate::audits::results::SampleScores;
use crate::audits::stored_scores::ScoreHeader;
use crate::datasets::SampleBlocks;
use crate::pool::ModelInfo;
use crate::scorer::Overflow;
use mia::methods::LabelledMethod;
use mia::statistics::{CalibrationError, CalibrationScores};
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

    /// The scores of a column, one a cluster.
    ///
    /// # Errors
    /// [`CalibrationError`], where there are too few.
    pub fn scores(&self, place: usize) -> Result<&CalibrationScores, CalibrationError> {
        self.all[place].as_ref().map_err(Clone::clone)
    }

    /// The same without some clusters.
    pub fn without(&self, place: usize, clusters: &HashSet<usize>) -> Result<CalibrationScores, CalibrationError> {
        let scored = self.rows.iter().zip(&self.clusters).filter(|(_, cluster)| !clusters.contains(cluster));
        CalibrationScores::new(highest(scored.filter_map(|(row, &cluster)| Some((cluster, row.scores[place]?)))))
    }

    /// How many scores there are.
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

    /// The numbers of scored tokens of its texts.
    pub fn lengths(&self) -> impl Iterator<Item = f64> {
        self.rows.iter().map(|row| row.scored_tokens as f64)
    }
}

/// The highest score of each cluster, in the order in which clusters appear.
pub fn highest(scores: impl Iterator<Item = (usize, f64)>) -> Vec<f64> {
    let mut clusters: indexmap::IndexMap<usize, f64> = indexmap::IndexMap::new();
    for (cluster, score) in scores {
        clusters.entry(cluster).and_modify(|highest| *highest = highest.max(score)).or_insert(score);
    }
    clusters.into_values().collect()
}
