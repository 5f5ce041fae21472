//! The p-values of scored texts against a calibration.

use super::jobs::JobId;
use super::problem::{Kind, Problem};
use super::state::ApiState;
use crate::audits::{Calibration, CalibrationKind, CalibrationMismatch};
use crate::jobs::{JobError, JobKind};
use crate::scorer::{Bound, Input, TextResult};
use crate::store::JobStatus;
use mia::methods::LabelledMethod;
use mia::statistics::CalibrationError;
use mia::texts::cluster_digest;
use serde::Serialize;
use std::collections::HashSet;
use std::sync::Arc;
use utoipa::ToSchema;

/// The calibration that gave the p-values.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UsedCalibration)]
pub struct CalibrationEcho {
    id: String,
    /// Texts scored that are in the calibration; against each the rest of it counts.
    overlap: usize,
    /// One entry per method.
    methods: Vec<CalibrationSize>,
}

/// Resolution of the p-values of a method.
#[derive(Debug, Serialize, ToSchema)]
pub struct CalibrationSize {
    label: String,
    /// Clusters of known non-members that have a score.
    clusters: usize,
    /// The smallest p-value that is possible, 1 / (clusters + 1).
    resolution: f64,
}

/// The calibration of this id.
pub async fn named(state: &ApiState, id: &str) -> Result<Arc<Calibration>, Problem> {
    let JobId(id, _) = JobId::<CalibrationKind>::parse(id)?;
    let calibrations = state.jobs.kind::<CalibrationKind>()?;
    let snapshot = calibrations.get(id).await?;
    if snapshot.status != JobStatus::Succeeded {
        let detail = "the calibration has not succeeded, so that there are no scores to compare with";
        return Err(Problem::new(Kind::Conflict, detail));
    }
    if let Some(known) = state.calibration_cache.get(&id) {
        return Ok(known);
    }
    let loaded = calibrations.scores(id).await?;
    let gone = || Problem::from(JobError::NotFound(CalibrationKind::NAME));
    let calibration = Arc::new(loaded.ok_or_else(gone)?);
    state.calibration_cache.insert(id, Arc::clone(&calibration));
    Ok(calibration)
}

/// The columns of the calibration for the methods of a request.
pub fn places(calibration: &Calibration, bound: &Bound) -> Result<Vec<usize>, Problem> {
    Ok(calibration.places(&bound.models[0].info, bound.plan.overflow, &bound.numerics(), &bound.plan.methods)?)
}

/// The calibration of a request, with the texts that it scores.
pub struct RequestCalibration {
    id: String,
    pub calibration: Arc<Calibration>,
    texts: Vec<String>,
}

impl RequestCalibration {
    pub async fn new(state: &ApiState, id: String, inputs: &[Input]) -> Result<Self, Problem> {
        let texts = inputs.iter().map(|input| input.text.clone()).collect();
        Ok(Self { calibration: named(state, &id).await?, id, texts })
    }

    /// Adds the p-value of each score to the results, which are in the order of the texts. Fails where too few known non-members are
    /// left without a text.
    pub fn add_p_values(
        &self,
        places: &[usize],
        methods: &[LabelledMethod],
        results: &mut [TextResult],
    ) -> Result<CalibrationEcho, CalibrationMismatch> {
        let failed = |label: &Arc<str>, error| CalibrationMismatch::Scores { label: label.to_string(), error };
        let columns = || methods.iter().map(|method| &method.label).zip(places);
        let mut overlap = 0;
        for (result, text) in results.iter_mut().zip(&self.texts) {
            let left_out: HashSet<usize> = self.calibration.cluster(cluster_digest(text)).into_iter().collect();
            overlap += left_out.len();
            for (label, score) in &result.scores {
                let Some((_, &place)) = columns().find(|(known, _)| *known == label) else { continue };
                let p_value = self.p_value(place, *score, &left_out).map_err(|error| failed(label, error))?;
                result.p_values.push((Arc::clone(label), p_value));
            }
        }
        let size = |(label, &place): (&Arc<str>, &usize)| {
            let known = self.calibration.scores(place).map_err(|error| failed(label, error))?;
            Ok(CalibrationSize { label: label.to_string(), clusters: known.size(), resolution: known.resolution() })
        };
        let methods = columns().map(size).collect::<Result<_, _>>()?;
        Ok(CalibrationEcho { id: self.id.clone(), overlap, methods })
    }

    /// The p-value of a score against all clusters but those.
    fn p_value(&self, place: usize, score: f64, left_out: &HashSet<usize>) -> Result<f64, CalibrationError> {
        match left_out.is_empty() {
            true => Ok(self.calibration.scores(place)?.p_value(score)),
            false => Ok(self.calibration.without(place, left_out)?.p_value(score)),
        }
    }
}
