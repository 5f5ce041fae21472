//! The loss attack: the mean log-probability of the text's tokens.

use super::definition::{Access, Definition, MethodDefinition, PdrPolicy};
use super::formula::{FormulaInput, Outcome, ScoreError, log_probabilities};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Loss;

impl MethodDefinition for Loss {
    const DEFINITION: Definition = Definition {
        summary: "Mean log-probability of the text's tokens.",
        formula: "mean_t lp_t",
        needs: &[Access::LogProbabilities],
        further_passes: "none",
        source: "Yeom et al. 2018, arXiv:1709.01604",
        parameters: &[],
        pdr: PdrPolicy::Accepted { published: true, selects: false, text_alone: true },
    };

    fn evaluate(&self, input: &FormulaInput) -> Result<Outcome, ScoreError> {
        input.sum(&log_probabilities(input.tokens()?)?).map(Outcome::Sum)
    }
}
