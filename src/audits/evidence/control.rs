//! A method beside the same under a model that has not seen the members.

use super::CONFIDENCE;
use super::placebo::{Placebo, PlaceboSample, placebos};
use mia::statistics::{LabelledScore, PairedScore, auroc, delong};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What the method finds beyond what the control model finds in the same texts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ControlFindings {
    /// Id of the control model; of `ref`, that of its reference model.
    pub model: String,
    /// AUROC under the control, on the samples that both score; what the texts alone give. Absent for `ref`, whose score has
    /// the control inside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auroc: Option<f64>,
    /// AUROC minus that under the control; of `ref`, minus one half.
    pub difference: f64,
    /// By DeLong, by cluster; absent where a class has fewer than two clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<f64>,
    /// Normal, at a confidence of 0.95; absent without a standard error above 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// The same between groups of non-members of at least 50 texts, where there are such groups.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    #[schema(required = false)]
    pub placebos: Vec<Placebo>,
}

/// A sample that the method scores under both models.
#[derive(Clone, Copy, Debug)]
pub struct ControlSample<'a> {
    pub member: bool,
    pub cluster: usize,
    pub group: Option<&'a str>,
    pub target: f64,
    /// None where the score is controlled by itself.
    pub control: Option<f64>,
}

impl ControlFindings {
    /// The lower 95 % bound of the difference: the difference itself where it does not vary.
    #[must_use]
    pub fn lower_bound(&self) -> Option<f64> {
        let fixed = (self.standard_error == Some(0.0)).then_some(self.difference);
        self.interval.map(|[low, _]| low).or(fixed)
    }
}

/// Compares the scores under both models; none where a class has no sample. A score that is controlled by itself is compared
/// with one that is the same for all texts, whose AUROC is one half.
#[must_use]
pub fn control_findings<'a>(model: &str, samples: &[ControlSample<'a>]) -> Option<ControlFindings> {
    let scores: Vec<PairedScore> = samples
        .iter()
        .map(|&ControlSample { member, target, control, .. }| PairedScore {
            member,
            first: control.unwrap_or(0.0),
            second: target,
        })
        .collect();
    let clusters: Vec<usize> = samples.iter().map(|sample| sample.cluster).collect();
    let compared = delong(&scores, &clusters, CONFIDENCE).ok()?;
    let controls: Option<Vec<LabelledScore>> =
        samples.iter().map(|sample| Some(LabelledScore { score: sample.control?, member: sample.member })).collect();
    let non_member = |sample: &ControlSample<'a>| {
        let &ControlSample { cluster, target, control, .. } = sample;
        let group = sample.group.filter(|_| !sample.member)?;
        Some(PlaceboSample { group, cluster, control: control.unwrap_or(0.0), target })
    };
    let non_members: Vec<PlaceboSample> = samples.iter().filter_map(non_member).collect();
    Some(ControlFindings {
        model: model.to_owned(),
        auroc: controls.and_then(|controls| auroc(&controls).ok()),
        difference: compared.delta,
        standard_error: compared.standard_error,
        interval: compared.interval,
        placebos: placebos(&non_members),
    })
}
