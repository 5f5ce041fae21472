//! The verdict of a test, as data.

use super::basis::{TestReason, UnitControl};
use super::kind::UnitKind;
use super::measure::UnitEffect;
use crate::audits::evidence::{Design, Verdict, VerdictModel, VerdictState};
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// The verdict of a test.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = TestVerdict)]
pub enum TestVerdict {
    /// On two lists of texts, of `dataset`.
    Lists(Box<Verdict>),
    /// On documents, canaries or shards.
    Units(Box<UnitVerdict>),
}

/// A verdict on documents, canaries or shards. The sentence is made of the other fields alone.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = TestUnitVerdict)]
pub struct UnitVerdict {
    pub state: VerdictState,
    pub reason: TestReason,
    pub design: Design,
    pub kind: UnitKind,
    /// The null hypothesis.
    pub hypothesis: String,
    /// The significance level of the one-sided tests.
    pub level: f64,
    /// Label of the method that was tested.
    #[schema(value_type = String)]
    pub primary: Arc<str>,
    pub model: VerdictModel,
    /// Documents, canaries or shards that are compared.
    pub tested: usize,
    /// The p-value of the effect or, where there is a control, the larger of that and of the one beyond the control: both
    /// must be at most `level`. Absent where one of them is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// The smallest p-value that this many can give; absent where there is no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smallest_p_value: Option<f64>,
    /// Absent where nothing was tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<UnitEffect>,
    /// Absent without a control model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<UnitControl>,
    /// True if the test is the one that was committed to; absent without a commitment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub committed: Option<bool>,
    /// The smallest effect that this many would show at this level with a power of 0.8: for shares of twins by the normal
    /// approximation with the variance under the null hypothesis, else by Student's distribution with the observed variance.
    /// Absent where no effect could be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub could_have_found: Option<f64>,
    /// Assumptions of the test.
    pub assumptions: Vec<String>,
    pub sentence: String,
}
