//! What a token's position, or its entropy, makes of its weight: PDR and the ablations of its paper.

use super::decay::{Curve, Decay};
use super::slope::slope;
use crate::token_stats::TokenStats;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

/// Where the weights come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Weighting {
    /// Positional decay.
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

/// What the weights of a text may depend on beside its tokens.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The raw text.
    pub text: &'a str,
    /// The weights of [`Weighting::EntropyDataset`], by position, as [`dataset_weights`] gives them; empty outside of an
    /// audit.
    pub dataset: &'a [f64],
}

/// The kinds of weighting, by the names that clients use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightingName {
    /// A family of decay by its own name.
    Decay(Decay),
    /// [`Weighting::Reverse`].
    Reverse,
    /// [`Weighting::Random`].
    Random,
    /// [`Weighting::EntropySample`].
    EntropySample,
    /// [`Weighting::EntropyDataset`].
    EntropyDataset,
    /// [`Weighting::Slope`].
    Slope,
}

impl WeightingName {
    /// Every kind, in the order in which they are listed to clients.
    pub const ALL: [WeightingName; 8] = [
        WeightingName::Decay(Decay::Linear),
        WeightingName::Decay(Decay::Exponential),
        WeightingName::Decay(Decay::Polynomial),
        WeightingName::Reverse,
        WeightingName::Random,
        WeightingName::EntropySample,
        WeightingName::EntropyDataset,
        WeightingName::Slope,
    ];

    /// What clients call it.
    pub fn name(self) -> &'static str {
        match self {
            WeightingName::Decay(family) => family.name(),
            WeightingName::Reverse => "reverse",
            WeightingName::Random => "random",
            WeightingName::EntropySample => "entropy_sample",
            WeightingName::EntropyDataset => "entropy_dataset",
            WeightingName::Slope => "slope",
        }
    }

    /// The kind of that name, if there is one.
    pub fn from_name(name: &str) -> Option<WeightingName> {
        Self::ALL.into_iter().find(|weighting| weighting.name() == name)
    }

    /// Whether it reorders the weights of a family, and so takes `family`.
    pub fn takes_family(self) -> bool {
        matches!(self, WeightingName::Reverse | WeightingName::Random)
    }

    /// Whether it takes an alpha.
    pub fn takes_alpha(self) -> bool {
        self.takes_family() || matches!(self, WeightingName::Decay(_))
    }
}

impl std::fmt::Display for WeightingName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Weighting {
    /// Its kind.
    pub fn name(&self) -> WeightingName {
        match self {
            Weighting::Decay(curve) => WeightingName::Decay(curve.family()),
            Weighting::Reverse(_) => WeightingName::Reverse,
            Weighting::Random { .. } => WeightingName::Random,
            Weighting::EntropySample => WeightingName::EntropySample,
            Weighting::EntropyDataset => WeightingName::EntropyDataset,
            Weighting::Slope => WeightingName::Slope,
        }
    }

    /// The decay whose weights it uses, if it uses one.
    pub fn curve(&self) -> Option<Curve> {
        match *self {
            Weighting::Decay(curve) | Weighting::Reverse(curve) | Weighting::Random { curve, .. } => Some(curve),
            Weighting::EntropySample | Weighting::EntropyDataset | Weighting::Slope => None,
        }
    }

    /// The weights of the n `tokens`, in order.
    pub fn weights(&self, tokens: &[TokenStats], around: &Surroundings) -> Vec<f64> {
        let n = tokens.len();
        let of = |curve: Curve| (1..=n).map(move |t| curve.weight(t, n));
        match *self {
            Weighting::Decay(curve) => of(curve).collect(),
            Weighting::Reverse(curve) => of(curve).rev().collect(),
            Weighting::Random { curve, seed } => shuffled(of(curve).collect(), seed, around.text),
            Weighting::EntropySample => over_largest(tokens.iter().map(TokenStats::entropy).collect()),
            Weighting::EntropyDataset => of_dataset(n, around.dataset),
            Weighting::Slope => {
                let alpha = slope(tokens);
                (1..=n).map(|t| Decay::Linear.weight(alpha, t, n)).collect()
            }
        }
    }
}

/// In an order that seed and text determine, so that it depends on no other text.
fn shuffled(weights: Vec<f64>, seed: u64, text: &str) -> Vec<f64> {
    let hash = Sha256::new().chain_update(seed.to_le_bytes()).chain_update(text).finalize();
    let mut random = ChaCha8Rng::from_seed(hash.into());
    let mut keyed: Vec<(u64, f64)> = weights.into_iter().map(|weight| (random.next_u64(), weight)).collect();
    keyed.sort_by_key(|(key, _)| *key);
    keyed.into_iter().map(|(_, weight)| weight).collect()
}

/// Each over the largest of them; 1 where none is above 0.
fn over_largest(values: Vec<f64>) -> Vec<f64> {
    let largest = values.iter().copied().fold(0.0, f64::max);
    values.into_iter().map(|value| if largest > 0.0 { value / largest } else { 1.0 }).collect()
}

/// The weights by position that a dataset has in common, from the mean entropy at each position.
pub fn dataset_weights(mean_entropies: Vec<f64>) -> Vec<f64> {
    over_largest(mean_entropies)
}

/// The first n weights of the dataset. A position that no text of it has, has no weight, and so no score.
fn of_dataset(n: usize, dataset: &[f64]) -> Vec<f64> {
    (0..n).map(|at| dataset.get(at).copied().unwrap_or(f64::NAN)).collect()
}
