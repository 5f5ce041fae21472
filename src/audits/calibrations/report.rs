//! Report of a calibration.

use crate::audits::results::AuditResults;
use mia::statistics::CalibrationScores;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::calibration::single_scores;
use crate::audits::cluster_ids::dense;

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
    #[must_use]
    pub fn unknown(label: String) -> Self {
        Self { label, size: None, clusters: None, resolution: None }
    }
}

#[must_use]
pub fn calibration_report(results: &AuditResults) -> CalibrationReport {
    let clusters = dense(results.rows.iter().map(|row| row.cluster));
    let method = |(place, label): (usize, String)| {
        let scores = single_scores(&results.rows, &clusters, |row| results.rows[row].scores[place]);
        CalibratedMethod {
            label,
            size: Some(results.rows.iter().filter(|row| row.scores[place].is_some()).count()),
            clusters: Some(scores.len()),
            resolution: CalibrationScores::new(scores).ok().map(|scores| scores.resolution()),
        }
    };
    CalibrationReport {
        methods: results.listed().map(|(place, column)| method((place, column.method.label.to_string()))).collect(),
        clusters: clusters.iter().max().map_or(0, |last| last + 1),
        forward_passes: results.usage.forward_passes,
        cached_passes: results.usage.cached_passes,
    }
}
