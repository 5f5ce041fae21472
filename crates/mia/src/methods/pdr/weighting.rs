//! The weight of each token, by its position or by entropy: the positional decays of PDR (arXiv 2601.06827) and the ablations of
//! its paper.

use crate::TokenStats;
use crate::methods::access::Access;
use crate::methods::range::Range;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};
use strum::{Display, EnumString, IntoStaticStr, VariantArray, VariantNames};

/// A family of positional decay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr, VariantArray, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Decay {
    /// `w(t) = 1 - alpha (t-1)/(n-1)` (LPDR).
    Linear,
    /// `w(t) = exp(-alpha (t-1))` (EPDR).
    Exponential,
    /// `w(t) = (1 - (t-1)/(n-1))^alpha` (PPDR); a larger alpha decays faster.
    Polynomial,
}

impl Decay {
    /// The values of alpha for which the weights are meant: an alpha of 0 is the base score, which the
    /// polynomial cannot express at its last position (0^0).
    pub fn alpha_range(self) -> Range {
        match self {
            Decay::Linear => Range::between(0.0, 1.0),
            Decay::Exponential => Range::from_zero(),
            Decay::Polynomial => Range::above_zero(),
        }
    }

    /// The weight of position `t` of `n`, `1 <= t <= n`, for any `alpha`.
    ///
    /// It is exactly 1 at the first position, everywhere if `alpha` is 0, and where `n = 1`, for which the
    /// formulas of the linear and the polynomial decay are 0/0.
    pub fn weight(self, alpha: f64, t: usize, n: usize) -> f64 {
        if n <= 1 {
            return 1.0;
        }
        let steps = t.saturating_sub(1) as f64;
        let progress = steps / (n - 1) as f64;
        match self {
            Decay::Linear => 1.0 - alpha * progress,
            Decay::Exponential => (-alpha * steps).exp(),
            Decay::Polynomial => (1.0 - progress).powf(alpha),
        }
    }
}

/// A family with an alpha in its range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curve {
    family: Decay,
    alpha: f64,
}

impl Curve {
    /// `None` if `alpha` is outside [`Decay::alpha_range`].
    pub fn new(family: Decay, alpha: f64) -> Option<Curve> {
        // A negative zero becomes a positive one, so that no label reads `alpha=-0`.
        family.alpha_range().contains(alpha).then_some(Curve { family, alpha: alpha + 0.0 })
    }

    /// Linear decay from 1 down to 0, the paper's plainest setting.
    pub const LINEAR: Curve = Curve::published(Decay::Linear, 1.0);

    /// A curve with an alpha that the paper uses, and so in its range.
    pub(in crate::methods) const fn published(family: Decay, alpha: f64) -> Curve {
        Curve { family, alpha }
    }

    pub fn family(&self) -> Decay {
        self.family
    }

    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// The weight of position `t` of `n`, `1 <= t <= n`; in [0, 1].
    pub fn weight(&self, t: usize, n: usize) -> f64 {
        self.family.weight(self.alpha, t, n)
    }
}

/// Where the weights come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Weighting {
    Decay(Curve),
    /// The same weights backwards: `w(n + 1 - t)`.
    Reverse(Curve),
    /// The same weights in random order, another one for each text.
    Random {
        /// Whose weights they are.
        curve: Curve,
        /// With the text, this determines the order.
        seed: u64,
    },
    /// `H_t / max_t H_t`, with H the entropy of the model's distribution.
    EntropySample,
    /// The mean of H_t over the texts of an audit that have a position t, over the largest such mean.
    EntropyDataset,
    /// Linear decay whose alpha is the least-squares slope of the losses `-lp_t` on t (CAMIA), not clamped.
    Slope,
}

/// Inputs of the weights of a text beside its tokens.
#[derive(Clone, Copy, Debug)]
pub struct WeightContext<'a> {
    /// The raw text.
    pub text: &'a str,
    /// The weights of [`Weighting::EntropyDataset`], by position, as `dataset_weights` computes them; empty outside of an
    /// audit.
    pub dataset: &'a [f64],
}

impl Weighting {
    /// The data that the weights are computed from; nothing if they depend on position alone.
    pub fn needs(&self) -> &'static [Access] {
        match self {
            Self::Decay(_) | Self::Reverse(_) => &[],
            Self::Random { .. } => &[Access::Text],
            Self::EntropySample | Self::EntropyDataset => &[Access::FullLogits],
            Self::Slope => &[Access::LogProbabilities],
        }
    }

    /// One of each name, in the order in which they are listed to clients.
    pub const NAMED: [Weighting; 8] = [
        Weighting::Decay(Curve::LINEAR),
        Weighting::Decay(Curve::published(Decay::Exponential, 1.0)),
        Weighting::Decay(Curve::published(Decay::Polynomial, 1.0)),
        Weighting::Reverse(Curve::LINEAR),
        Weighting::Random { curve: Curve::LINEAR, seed: 0 },
        Weighting::EntropySample,
        Weighting::EntropyDataset,
        Weighting::Slope,
    ];

    /// The value of `pdr.decay`.
    pub fn name(&self) -> &'static str {
        match self {
            Weighting::Decay(curve) => curve.family.into(),
            Weighting::Reverse(_) => "reverse",
            Weighting::Random { .. } => "random",
            Weighting::EntropySample => "entropy_sample",
            Weighting::EntropyDataset => "entropy_dataset",
            Weighting::Slope => "slope",
        }
    }

    /// Returns true if it reorders the weights of a family, and so takes `family`.
    pub fn takes_family(&self) -> bool {
        matches!(self, Weighting::Reverse(_) | Weighting::Random { .. })
    }

    /// The decay whose weights it uses, if it uses one.
    pub fn curve(&self) -> Option<Curve> {
        match *self {
            Weighting::Decay(curve) | Weighting::Reverse(curve) | Weighting::Random { curve, .. } => Some(curve),
            Weighting::EntropySample | Weighting::EntropyDataset | Weighting::Slope => None,
        }
    }

    /// The weights of the n `tokens`, in order.
    pub fn weights(&self, tokens: &[TokenStats], context: &WeightContext) -> Vec<f64> {
        let n = tokens.len();
        let positional = |curve: Curve| (1..=n).map(move |t| curve.weight(t, n));
        match *self {
            Weighting::Decay(curve) => positional(curve).collect(),
            Weighting::Reverse(curve) => positional(curve).rev().collect(),
            Weighting::Random { curve, seed } => shuffled(positional(curve).collect(), seed, context.text),
            Weighting::EntropySample => relative_to_largest(tokens.iter().map(TokenStats::entropy).collect()),
            // A position that no text of the dataset has, has no weight, and so no score.
            Weighting::EntropyDataset => {
                let weight = |index| context.dataset.get(index).copied().unwrap_or(f64::NAN);
                (0..n).map(weight).collect()
            }
            Weighting::Slope => {
                let alpha = slope(tokens);
                (1..=n).map(|t| Decay::Linear.weight(alpha, t, n)).collect()
            }
        }
    }
}

/// Each over the largest of them; 1 where none is above 0.
fn relative_to_largest(values: Vec<f64>) -> Vec<f64> {
    let largest = values.iter().copied().fold(0.0, f64::max);
    values.into_iter().map(|value| if largest > 0.0 { value / largest } else { 1.0 }).collect()
}

/// The weights by position that a dataset has in common, from the mean entropy at each position.
pub fn dataset_weights(mean_entropies: Vec<f64>) -> Vec<f64> {
    relative_to_largest(mean_entropies)
}

/// The weights in an order that seed and text determine, so that it depends on no other text.
fn shuffled(weights: Vec<f64>, seed: u64, text: &str) -> Vec<f64> {
    let hash = Sha256::new().chain_update(seed.to_le_bytes()).chain_update(text).finalize();
    let mut random = ChaCha8Rng::from_seed(hash.into());
    let mut keyed: Vec<(u64, f64)> = weights.into_iter().map(|weight| (random.next_u64(), weight)).collect();
    keyed.sort_by_key(|(key, _)| *key);
    keyed.into_iter().map(|(_, weight)| weight).collect()
}

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
