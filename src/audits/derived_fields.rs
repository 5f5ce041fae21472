//! Fields of an audit's lines that the scores of all lines determine.

use super::results::SampleScores;
use std::sync::Arc;

/// Fields of a line that all lines together determine.
pub struct DerivedFields {
    pub log_odds: Option<f64>,
    p_values: Vec<(Arc<str>, f64)>,
    p_value_adjusted: Option<f64>,
    flagged: Option<bool>,
    posterior: Option<f64>,
}

impl DerivedFields {
    /// Takes the fields out of a row.
    pub fn take(row: &mut SampleScores) -> Self {
        Self {
            log_odds: row.log_odds.take(),
            p_values: std::mem::take(&mut row.p_values),
            p_value_adjusted: row.p_value_adjusted.take(),
            flagged: row.flagged.take(),
            posterior: row.posterior.take(),
        }
    }

    /// The first field that differs from that of the row. Without the known non-members p-values are not known.
    pub fn difference(&self, row: &SampleScores, is_decided: bool, has_texts: bool) -> Option<&'static str> {
        let is_listed = |(label, p_value): &(Arc<str>, f64)| {
            self.p_values.iter().any(|(known, claimed)| known == label && is_same(Some(*claimed), Some(*p_value)))
        };
        let p_values = self.p_values.len() != row.p_values.len() || !row.p_values.iter().all(is_listed);
        let differs = [
            ("log_odds", has_texts && !is_close(row.log_odds, self.log_odds)),
            ("p_values", is_decided && p_values),
            ("p_value_adjusted", is_decided && !is_same(row.p_value_adjusted, self.p_value_adjusted)),
            ("flagged", is_decided && row.flagged != self.flagged),
            ("posterior", !is_same(row.posterior, self.posterior)),
        ];
        differs.into_iter().find_map(|(field, differs)| differs.then_some(field))
    }
}

/// Largest difference of log-odds, relative to them and near 0: the last bits of a logarithm differ between libraries, and the regression
/// sums thousands of them.
const LOG_ODDS: [f64; 2] = [1e-6, 1e-9];
/// The same of p-values and probabilities, which are ratios of counts.
const RATIOS: [f64; 2] = [1e-12, 0.0];

fn is_close(a: Option<f64>, b: Option<f64>) -> bool {
    is_within(a, b, LOG_ODDS)
}

fn is_same(a: Option<f64>, b: Option<f64>) -> bool {
    is_within(a, b, RATIOS)
}

fn is_within(a: Option<f64>, b: Option<f64>, [relative, absolute]: [f64; 2]) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= (relative * a.abs().max(b.abs())).max(absolute),
        (None, None) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probability_differs_sooner_than_log_odds() {
        let (one, other) = (Some(0.5), Some(0.5 + 1e-8));
        assert!(is_close(one, other) && !is_same(one, other));
        assert!(!is_close(Some(0.5), Some(0.500001)) && is_close(Some(0.0), Some(1e-10)));
        assert!(!is_same(Some(0.0), None) && is_same(None, None));
    }
}
