//! Min-K%++ (Zhang et al. 2024): as Min-K%, of log-probabilities standardised by the model's distribution.

use super::definition::{Access, Definition, MethodDefinition, PdrPolicy};
use super::formula::{FormulaInput, Outcome, ScoreError, finite, finite_variance};
use super::parameter::K_FIFTH;
use super::range::Fraction;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MinKPlusPlus {
    /// Share of tokens selected.
    pub k: Fraction,
}

impl MethodDefinition for MinKPlusPlus {
    const DEFINITION: Definition = Definition {
        summary: "As min_k, of log-probabilities standardised by the model's distribution at each position.",
        formula: "mean of the max(1, floor(k n)) lowest (lp_t - mu_t) / sigma_t",
        needs: &[Access::LogProbabilities, Access::FullLogits],
        further_passes: "none",
        source: "Zhang et al. 2024, arXiv:2404.02936",
        parameters: &[&K_FIFTH],
        pdr: PdrPolicy::Accepted { published: true, selects: true, text_alone: true },
    };

    fn evaluate(&self, input: &FormulaInput) -> Result<Outcome, ScoreError> {
        let values = finite(input.tokens()?.iter().map(|token| finite_variance(token, token.z())))?;
        input.sum_of_lowest(&values, self.k).map(Outcome::Sum)
    }
}
