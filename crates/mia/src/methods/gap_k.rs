//! Gap-K% (Kwak and Kim 2026): how far the text's tokens fall behind the model's first choice, smoothed over
//! neighbouring tokens.

use super::definition::{Access, Definition, MethodDefinition, PdrPolicy};
use super::formula::{FormulaInput, Outcome, ScoreError, finite, finite_variance};
use super::parameter::{K_FIFTH, Parameter, ParameterKind};
use super::range::{Fraction, Range};
use super::value::ValueType;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GapK {
    /// Share of tokens selected.
    pub k: Fraction,
    /// Tokens in a moving average.
    pub window: usize,
}

impl GapK {
    /// The window of the paper.
    pub(super) const WINDOW: usize = 3;
}

static WINDOW: Parameter = Parameter {
    name: "window",
    kind: ParameterKind::Number {
        value_type: ValueType::Integer,
        range: Range::between(1.0, 64.0),
        default: GapK::WINDOW as f64,
    },
    description: "Values in a moving average; shorter texts are not averaged.",
};

impl MethodDefinition for GapK {
    const DEFINITION: Definition = Definition {
        summary: "How far the text's tokens fall behind the model's first choice, smoothed over neighbouring tokens.",
        formula: "g_t = (lp_t - max_v lp_v,t) / sigma_t, moving average over `window`, mean of the max(1, floor(k m)) lowest \
                  of its m values",
        needs: &[Access::LogProbabilities, Access::FirstChoice, Access::FullLogits],
        further_passes: "none",
        source: "Gap-K%: Kwak and Kim 2026, arXiv:2601.19936",
        parameters: &[&K_FIFTH, &WINDOW],
        pdr: PdrPolicy::Refused("its values are moving averages, which belong to no single position"),
    };

    fn evaluate(&self, input: &FormulaInput) -> Result<Outcome, ScoreError> {
        let gaps =
            input.tokens()?.iter().map(|token| finite_variance(token, (token.lp - token.max_lp) / token.sigma()));
        let values = moving_average(finite(gaps)?, self.window);
        let sum = input.sum_of_lowest(&values, self.k)?;
        // A moving average belongs to no single token, so none contributes to the score alone.
        sum.quotient().map(Outcome::Value)
    }
}

/// The mean of every `window` values in a row; the values themselves where there are fewer.
fn moving_average(values: Vec<f64>, window: usize) -> Vec<f64> {
    if values.len() < window {
        return values;
    }
    values.windows(window).map(|values| values.iter().sum::<f64>() / window as f64).collect()
}
