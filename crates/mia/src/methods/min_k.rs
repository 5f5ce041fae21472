//! Min-K% (Shi et al. 2024): the mean log-probability of the least likely tokens.

use super::definition::{Access, Definition, MethodDefinition, PdrPolicy};
use super::formula::{FormulaInput, Outcome, ScoreError, log_probabilities};
use super::parameter::K_FIFTH;
use super::range::Fraction;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MinK {
    /// Share of tokens selected.
    pub k: Fraction,
}

impl MethodDefinition for MinK {
    const DEFINITION: Definition = Definition {
        summary: "Mean log-probability of the least likely tokens.",
        formula: "mean of the max(1, floor(k n)) lowest lp_t",
        needs: &[Access::LogProbabilities],
        further_passes: "none",
        source: "Shi et al. 2024, arXiv:2310.16789",
        parameters: &[&K_FIFTH],
        pdr: PdrPolicy::Accepted { published: true, selects: true, text_alone: true },
    };

    fn evaluate(&self, input: &FormulaInput) -> Result<Outcome, ScoreError> {
        let values = log_probabilities(input.tokens()?)?;
        input.sum_of_lowest(&values, self.k).map(Outcome::Sum)
    }
}
