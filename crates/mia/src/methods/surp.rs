//! SURP (Zhang and Wu 2024): the mean log-probability of unlikely tokens at positions where the model was sure.

use super::definition::{Access, Definition, MethodDefinition, PdrPolicy};
use super::formula::{FormulaInput, Outcome, ScoreError, log_probabilities, lowest};
use super::parameter::{Parameter, ParameterKind, share_selected};
use super::range::{Fraction, Range};
use super::value::ValueType;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Surp {
    /// Share of tokens selected.
    pub k: Fraction,
    /// Entropy below which the model is sure, in nats.
    pub max_entropy: f64,
}

static K: Parameter = share_selected(Fraction::TWO_FIFTHS);

static MAX_ENTROPY: Parameter = Parameter {
    name: "max_entropy",
    kind: ParameterKind::Number { value_type: ValueType::Number, range: Range::above_zero(), default: 2.0 },
    description: "The model is sure where its entropy is below this, in nats.",
};

impl MethodDefinition for Surp {
    const DEFINITION: Definition = Definition {
        summary: "Mean log-probability of unlikely tokens at positions where the model was sure.",
        formula: "mean of lp_t over the max(1, floor(k n)) lowest lp_t with entropy_t < max_entropy",
        needs: &[Access::LogProbabilities, Access::FullLogits],
        further_passes: "none",
        source: "SURP: Zhang and Wu 2024, arXiv:2407.21248",
        parameters: &[&K, &MAX_ENTROPY],
        pdr: PdrPolicy::Refused("it looks at the positions that entropy picks, wherever they are in the text"),
    };

    fn evaluate(&self, input: &FormulaInput) -> Result<Outcome, ScoreError> {
        let tokens = input.tokens()?;
        if tokens.iter().any(|token| !token.mu.is_finite()) {
            return Err(ScoreError::NonFinite);
        }
        let select = |values: &[f64]| {
            let mut unlikely = lowest(values, self.k.count(values.len()));
            unlikely.retain(|&index| tokens[index].entropy() < self.max_entropy);
            unlikely
        };
        input.sum_of_selected(&log_probabilities(tokens)?, select).map(Outcome::Sum)
    }
}
