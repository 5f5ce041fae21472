//! Report of a memorization job.

use super::extraction::LEAST_PROBABILITY;
use super::reading::reading;
use super::request::WindowShape;
use super::summary::ExtractionSummary;
use super::text_extraction::TextExtraction;
use crate::pool::ModelInfo;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Report of a memorization job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MemorizationReport {
    /// The model that was asked.
    pub model: ModelInfo,
    /// Windows of the texts.
    pub windows: WindowShape,
    /// The probability from which a window counts in `coverage`.
    pub least_probability: f64,
    /// The texts and the control beside each other.
    pub summary: ExtractionSummaries,
    /// Each text, in order.
    pub texts: Vec<TextExtraction>,
    /// Each text of the control, in order; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Vec<TextExtraction>>,
}

/// The texts and the control beside each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExtractionSummaries {
    /// All texts together.
    pub texts: ExtractionSummary,
    /// All texts of the control together; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<ExtractionSummary>,
    /// Reading of these numbers: what they show, and what they do not.
    pub reading: String,
}

impl MemorizationReport {
    /// The report of these texts, and of the control where there is one.
    #[must_use]
    pub fn new(
        model: ModelInfo,
        windows: WindowShape,
        texts: Vec<TextExtraction>,
        control: Option<Vec<TextExtraction>>,
    ) -> Self {
        let (of_texts, of_control) = (ExtractionSummary::new(&texts), control.as_deref().map(ExtractionSummary::new));
        let reading = reading(&of_texts, of_control.as_ref(), windows);
        let summary = ExtractionSummaries { texts: of_texts, control: of_control, reading };
        Self { model, windows, least_probability: LEAST_PROBABILITY, summary, texts, control }
    }
}
