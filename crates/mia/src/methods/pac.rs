//! PAC (Ye et al. 2024): how much further apart the likeliest and the unlikeliest tokens of a text are once its words have
//! changed places.

use super::auxiliary_pass::AuxiliaryPass;
use super::definition::{Access, Definition, MethodDefinition, PdrPolicy};
use super::formula::{FormulaInput, Outcome, ScoreError, log_probabilities, lowest};
use super::parameter::{Parameter, ParameterKind};
use super::range::{Fraction, Range};
use super::value::ValueType;
use super::word_swaps::WordSwaps;
use crate::TokenStats;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Pac {
    /// Share of the lowest log-probabilities.
    pub low: Fraction,
    /// Share of the highest log-probabilities.
    pub high: Fraction,
    /// Swaps of two words in a copy, as a share of the words.
    pub swaps: Fraction,
    /// Number of copies with swapped words.
    pub copies: usize,
    /// Seed of the swaps.
    pub seed: u64,
}

static LOW: Parameter = share("low", 0.3, "Share of the lowest log-probabilities, in (0, 1].");
static HIGH: Parameter = share("high", 0.05, "Share of the highest log-probabilities, in (0, 1].");
static SWAPS: Parameter =
    share("swaps", 0.3, "Swaps of two words in a copy of the text, as a share of its words, in (0, 1]; at least one.");

static COPIES: Parameter = Parameter {
    name: "copies",
    kind: ParameterKind::Number { value_type: ValueType::Integer, range: Range::between(1.0, 50.0), default: 5.0 },
    description: "Copies of the text with swapped words.",
};

static SEED: Parameter = Parameter {
    name: "seed",
    kind: ParameterKind::Number {
        value_type: ValueType::Integer,
        range: Range::between(0.0, 9_007_199_254_740_991.0),
        default: 0.0,
    },
    description: "Seed of the swaps; with the text it decides the copies.",
};

const fn share(name: &'static str, default: f64, description: &'static str) -> Parameter {
    let kind = ParameterKind::Number { value_type: ValueType::Number, range: Fraction::RANGE, default };
    Parameter { name, kind, description }
}

impl MethodDefinition for Pac {
    const DEFINITION: Definition = Definition {
        summary: "How much further apart the likeliest and the unlikeliest tokens are once words have changed places.",
        formula: "mean_i d(x_i) - d(x), d = mean of the max(1, floor(high n)) highest lp_t less mean of the max(1, floor(low n)) \
                  lowest",
        needs: &[Access::LogProbabilities, Access::Text],
        further_passes: "1 for each copy of the text with swapped words",
        source: "PAC: Ye et al. 2024, arXiv:2405.11930",
        parameters: &[&LOW, &HIGH, &SWAPS, &COPIES, &SEED],
        pdr: PdrPolicy::Refused("it compares extremes of a text with those of others, at whatever positions they are"),
    };

    fn passes(&self) -> Vec<(&'static str, AuxiliaryPass)> {
        vec![(SWAPS.name, self.pass())]
    }

    fn evaluate(&self, input: &FormulaInput) -> Result<Outcome, ScoreError> {
        let distance = self.polarized_distance(input.tokens()?)?;
        let copies = input.pass(&self.pass())?;
        let distances = copies.iter().map(|copy| self.polarized_distance(input.truncated(copy)));
        let sum = distances.sum::<Result<f64, _>>()?;
        Ok(Outcome::Value(sum / copies.len() as f64 - distance))
    }
}

impl Pac {
    fn pass(&self) -> AuxiliaryPass {
        AuxiliaryPass::Swapped(WordSwaps { share: self.swaps, copies: self.copies, seed: self.seed })
    }

    /// The mean of the highest log-probabilities less that of the lowest.
    fn polarized_distance(&self, tokens: &[TokenStats]) -> Result<f64, ScoreError> {
        if tokens.is_empty() {
            return Err(ScoreError::AuxiliaryTooShort);
        }
        let values = log_probabilities(tokens)?;
        let negated: Vec<f64> = values.iter().map(|value| -value).collect();
        // The highest are the lowest of the negated values, so that both means have the sign of the distance.
        Ok(-mean_of_lowest(&negated, self.high) - mean_of_lowest(&values, self.low))
    }
}

fn mean_of_lowest(values: &[f64], share: Fraction) -> f64 {
    let selected = lowest(values, share.count(values.len()));
    selected.iter().map(|&index| values[index]).sum::<f64>() / selected.len() as f64
}
