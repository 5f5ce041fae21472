//! The slope of the losses over the text, a signal of CAMIA.

use crate::TokenStats;

/// Least-squares slope of the losses `-lp_t` on t = 1..n, in nats per token; 0 for fewer than two tokens.
///
/// Usually negative: the text read so far makes the rest less surprising.
pub fn slope(tokens: &[TokenStats]) -> f64 {
    let n = tokens.len() as f64;
    if tokens.len() < 2 {
        return 0.0;
    }
    let center = (n + 1.0) / 2.0;
    let mean = -tokens.iter().map(|token| token.lp).sum::<f64>() / n;
    let distance = |index: usize| (index + 1) as f64 - center;
    let covariance: f64 = tokens.iter().enumerate().map(|(index, token)| distance(index) * (-token.lp - mean)).sum();
    // Of 1..n, the sum of squared distances from the center.
    covariance / (n * (n * n - 1.0) / 12.0)
}
