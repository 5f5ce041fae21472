//! Max-K%: the mean log-probability of the most likely tokens, the counterpart of Min-K%.

use super::definition::{Access, Definition, MethodDefinition, PdrPolicy};
use super::formula::{FormulaInput, Outcome, ScoreError, log_probabilities, lowest};
use super::parameter::K_FIFTH;
use super::range::Fraction;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MaxK {
    /// Share of tokens selected.
    pub k: Fraction,
}

impl MethodDefinition for MaxK {
    const DEFINITION: Definition = Definition {
        summary: "Mean log-probability of the most likely tokens.",
        formula: "mean of the max(1, floor(k n)) highest lp_t",
        needs: &[Access::LogProbabilities],
        further_passes: "none",
        source: "Counterpart of Min-K%, Shi et al. 2024, arXiv:2310.16789",
        parameters: &[&K_FIFTH],
        pdr: PdrPolicy::Accepted { published: false, selects: true, text_alone: true },
    };

    fn evaluate(&self, input: &FormulaInput) -> Result<Outcome, ScoreError> {
        let values = log_probabilities(input.tokens()?)?;
        input.sum_of_selected(&values, |values| highest(values, self.k.count(values.len()))).map(Outcome::Sum)
    }
}

/// Indices of the `k` highest of `values`, in ascending order of index; of equal values the earlier.
fn highest(values: &[f64], k: usize) -> Vec<usize> {
    let negated: Vec<f64> = values.iter().map(|value| -value).collect();
    lowest(&negated, k)
}
