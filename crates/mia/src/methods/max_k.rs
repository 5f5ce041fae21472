//! Max-K%: the mean log-probability of the most likely tokens, the counterpart of Min-K%.

use super::definition::{Access, Definition, MethodDefinition, PdrPolicy};
use super::formula::{FormulaInput, Outcome, ScoreError, log_probabilities, lowest};
use super::parameter::K_FIFTH;
use super::range::Fraction;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Mean of the highest share `k` of the log-probabilities.
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

    fn label_parts(&self) -> Vec<(&'static str, String)> {
        vec![("k", self.k.to_string())]
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TokenStats;
    use crate::methods::{Method, Pdr, Select, TextStats, WeightContext, explain, score};

    /// Powers of two and their sums, so that the scores by hand are exact.
    const LPS: [f64; 5] = [-1.0, -0.5, -4.0, -0.25, -2.0];

    fn scored(lps: &[f64], k: f64, pdr: Option<Pdr>) -> (f64, Vec<bool>) {
        let tokens: Vec<TokenStats> =
            lps.iter().map(|&lp| TokenStats { lp, mu: f64::NAN, var: f64::NAN, max_lp: f64::NAN }).collect();
        let text = TextStats {
            tokens: &tokens,
            ids: &[],
            zlib_bytes: &|| 0,
            passes: &[],
            token_counts: &[],
            context: WeightContext { text: "", dataset: &[] },
        };
        let method = Method { pdr, ..Method::new(MaxK { k: Fraction::new(k).unwrap() }) };
        (score(&method, &text).unwrap(), explain(&method, &text).unwrap().unwrap().selected)
    }

    #[test]
    fn scores_by_hand() {
        // int(5 * 0.4) = 2 tokens: (-0.5 - 0.25) / 2.
        assert_eq!(scored(&LPS, 0.4, None), (-0.375, vec![false, true, false, true, false]));
        // max(1, int(5 * 0.1)) = 1 token.
        assert_eq!(scored(&LPS, 0.1, None).0, -0.25);
        assert_eq!(scored(&LPS, 1.0, None).0, -1.55);
        // The weights are 1, 0.75, 0.5, 0.25, 0: (-0.5 * 0.75 - 0.25 * 0.25) / 2.
        assert_eq!(scored(&LPS, 0.4, Some(Pdr::LINEAR)).0, -0.21875);
        // The highest weighted values are -0.25 * 0.25 and -2 * 0.
        let before = Pdr { select: Select::Before, ..Pdr::LINEAR };
        assert_eq!(scored(&LPS, 0.4, Some(before)), (-0.03125, vec![false, false, false, true, true]));
    }

    #[test]
    fn of_equal_values_the_earlier_is_taken() {
        let selected = scored(&[-1.0, -0.5, -0.5, -0.5, -3.0], 0.4, None).1;
        assert_eq!(selected, [false, true, true, false, false]);
    }

    #[test]
    fn weights_are_an_extension() {
        let method = Method::new(MaxK { k: Fraction::FIFTH });
        assert!(!method.extension());
        assert!(Method { pdr: Some(Pdr::LINEAR), ..method }.extension());
    }
}
