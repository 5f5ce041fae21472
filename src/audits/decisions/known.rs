//! The known non-members of an audit: those of a calibration, or a share of its own.

use crate::audits::calibration_mismatch::CalibrationMismatch;
use crate::audits::calibrations::{Calibration, highest};
use crate::audits::cluster_ids::dense;
use crate::audits::evidence::CalibrationShare;
use crate::audits::results::AuditResults;
use mia::methods::LabelledMethod;
use mia::random::{shuffle, stream};
use mia::statistics::{CalibrationError, CalibrationScores};
use std::collections::{BTreeMap, HashSet};

/// Known non-members with their scores.
pub struct KnownNonMembers {
    /// Of each listed method.
    pub scores: Vec<Result<CalibrationScores, CalibrationError>>,
    /// How many texts there are.
    pub texts: usize,
    /// Their numbers of scored tokens.
    pub lengths: Vec<f64>,
    /// Clusters that are tested as well, and do not count here.
    pub overlap: usize,
    /// Of each row of the audit whether it is tested.
    pub tested: Vec<bool>,
}

impl KnownNonMembers {
    /// Those of a calibration, without what is tested as well.
    pub fn stored(calibration: &Calibration, results: &AuditResults) -> Result<Self, CalibrationMismatch> {
        let methods: Vec<LabelledMethod> = results.listed().map(|(_, column)| column.method.clone()).collect();
        let places = calibration.places(&results.model, results.overflow, &results.numerics, &methods)?;
        let normalized = results.rows.iter().filter_map(|row| row.normalized);
        let overlap: HashSet<usize> = normalized.filter_map(|text| calibration.cluster(text)).collect();
        Ok(Self {
            scores: places.iter().map(|&place| calibration.without(place, &overlap)).collect(),
            texts: calibration.rows().len(),
            lengths: calibration.lengths().collect(),
            overlap: overlap.len(),
            tested: vec![true; results.rows.len()],
        })
    }

    /// A share of the clusters of the audit that have non-members alone, rounded.
    pub fn drawn(share: CalibrationShare, results: &AuditResults) -> Self {
        let clusters = dense(results.rows.iter().map(|row| row.cluster));
        let mut unknown: BTreeMap<usize, bool> = BTreeMap::new();
        for (row, &cluster) in results.rows.iter().zip(&clusters) {
            *unknown.entry(cluster).or_default() |= row.member != Some(false);
        }
        let mut known: Vec<usize> =
            unknown.into_iter().filter_map(|(cluster, unknown)| (!unknown).then_some(cluster)).collect();
        shuffle(&mut known, &mut stream(share.seed, "calibration share"));
        let count = (known.len() as f64 * share.share).round() as usize;
        let drawn: HashSet<usize> = known.into_iter().take(count).collect();
        let tested: Vec<bool> = clusters.iter().map(|cluster| !drawn.contains(cluster)).collect();
        let rows = || results.rows.iter().zip(&clusters).zip(&tested).filter(|(_, tested)| !**tested);
        let scores =
            |place: usize| highest(rows().filter_map(|((row, &cluster), _)| Some((cluster, row.scores[place]?))));
        Self {
            scores: results.listed().map(|(place, _)| CalibrationScores::new(scores(place))).collect(),
            texts: rows().count(),
            lengths: rows().map(|((row, _), _)| row.scored_tokens as f64).collect(),
            overlap: 0,
            tested,
        }
    }
}
