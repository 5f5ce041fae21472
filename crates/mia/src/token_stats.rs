//! Four numbers per scored token, from which every likelihood method is computed.
//!
//! A forward pass is reduced to these as soon as its logits exist, so that methods, decays and sweeps over their
//! parameters are cheap arithmetic afterwards. They are `f64`; only the model itself computes in `f32`.

/// The smallest variance that [`TokenStats::sigma`] uses, in nats squared: sigma is never below 1e-4.
///
/// A flat distribution has a variance of 0 (or, due to rounding, slightly less); without a floor its z would be 0/0.
pub const VARIANCE_FLOOR: f64 = 1e-8;

/// The statistics of one scored token, with p the model's distribution over its whole output dimension V given the
/// previous tokens.
///
/// A text of `n + 1` token ids has `n` of these: the first id has no previous token and is never scored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenStats {
    /// Log-probability of the observed token, in nats.
    pub lp: f64,
    /// Mean log-probability under the model, `sum_v p_v ln p_v` (a term with `p_v = 0` counts as 0), in nats.
    pub mu: f64,
    /// Variance of the log-probability under the model, `sum_v p_v (ln p_v - mu)^2`, in nats squared, before
    /// the floor.
    pub var: f64,
    /// Log-probability of the most probable token, `max_v ln p_v`, in nats.
    pub max_lp: f64,
}

impl TokenStats {
    /// Standard deviation of the log-probability under the model, in nats, with the variance floored at
    /// [`VARIANCE_FLOOR`]. A NaN variance stays NaN: it must not be mistaken for a flat distribution.
    pub fn sigma(&self) -> f64 {
        let floored = if self.var < VARIANCE_FLOOR { VARIANCE_FLOOR } else { self.var };
        floored.sqrt()
    }

    /// Shannon entropy of the model's distribution, `-mu`, in nats.
    pub fn entropy(&self) -> f64 {
        -self.mu
    }

    /// The log-probability standardised by the model's own moments, `(lp - mu) / sigma` (Min-K%++, Zhang et al. 2024,
    /// eq. 3); dimensionless.
    pub fn z(&self) -> f64 {
        (self.lp - self.mu) / self.sigma()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(var: f64) -> TokenStats {
        TokenStats { lp: -3.0, mu: -2.0, var, max_lp: -0.5 }
    }

    #[test]
    fn moments() {
        let token = token(4.0);
        assert_eq!(token.sigma(), 2.0);
        assert_eq!(token.entropy(), 2.0);
        assert_eq!(token.z(), -0.5);
    }

    #[test]
    fn a_flat_or_negative_variance_is_floored() {
        for var in [0.0, -1e-9, 1e-9, VARIANCE_FLOOR] {
            assert_eq!(token(var).sigma(), 1e-4, "var = {var}");
        }
    }

    #[test]
    fn a_nan_variance_stays_nan() {
        assert!(token(f64::NAN).z().is_nan());
    }
}
