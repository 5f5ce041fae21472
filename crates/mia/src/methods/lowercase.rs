//! The lowercase ratio (Carlini et al. 2021): the log-probability of the lower-cased text over that of the text.

use super::auxiliary_pass::AuxiliaryPass;
use super::definition::{Access, Definition, MethodDefinition, PdrPolicy};
use super::formula::{FormulaInput, Outcome, ScoreError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Lowercase;

impl MethodDefinition for Lowercase {
    const DEFINITION: Definition = Definition {
        summary: "Mean log-probability of the lower-cased text over that of the text.",
        formula: "mean lp(lower-cased text) / mean lp(text)",
        needs: &[Access::LogProbabilities, Access::Text],
        further_passes: "1, of the lower-cased text",
        source: "Carlini et al. 2021, arXiv:2012.07805",
        parameters: &[],
        pdr: PdrPolicy::Accepted { published: false, selects: false, text_alone: false },
    };

    fn passes(&self) -> Vec<(&'static str, AuxiliaryPass)> {
        vec![("name", AuxiliaryPass::Lowercase)]
    }

    fn evaluate(&self, input: &FormulaInput) -> Result<Outcome, ScoreError> {
        let lower = input.mean_of(input.sequence(&AuxiliaryPass::Lowercase)?)?;
        Ok(Outcome::Value(lower / input.denominator()?))
    }
}
