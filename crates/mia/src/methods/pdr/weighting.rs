//! The weight of each token, by its position or by entropy: PDR and the ablations of its paper.

use super::decay::{Curve, Decay};
use super::entropy::{first_weights, relative_to_largest};
use super::random::shuffled;
use super::slope::slope;
use crate::TokenStats;
use strum::{Display, EnumString, VariantArray};

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
pub struct WeightContext<'a> {
    /// The raw text.
    pub text: &'a str,
    /// The weights of [`Weighting::EntropyDataset`], by position, as `dataset_weights` computes them; empty outside of an
    /// audit.
    pub dataset: &'a [f64],
}

/// The kinds of weighting, by the names that clients use and in the order in which they are listed to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum WeightingName {
    /// [`Decay::Linear`].
    Linear,
    /// [`Decay::Exponential`].
    Exponential,
    /// [`Decay::Polynomial`].
    Polynomial,
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

impl From<Decay> for WeightingName {
    fn from(family: Decay) -> WeightingName {
        match family {
            Decay::Linear => WeightingName::Linear,
            Decay::Exponential => WeightingName::Exponential,
            Decay::Polynomial => WeightingName::Polynomial,
        }
    }
}

impl WeightingName {
    /// The family of a positional decay; `None` for an ablation.
    pub fn decay(self) -> Option<Decay> {
        match self {
            WeightingName::Linear => Some(Decay::Linear),
            WeightingName::Exponential => Some(Decay::Exponential),
            WeightingName::Polynomial => Some(Decay::Polynomial),
            WeightingName::Reverse
            | WeightingName::Random
            | WeightingName::EntropySample
            | WeightingName::EntropyDataset
            | WeightingName::Slope => None,
        }
    }

    /// Whether it reorders the weights of a family, and so takes `family`.
    pub fn takes_family(self) -> bool {
        matches!(self, WeightingName::Reverse | WeightingName::Random)
    }

    /// Whether it takes an alpha.
    pub fn takes_alpha(self) -> bool {
        self.takes_family() || self.decay().is_some()
    }
}

impl Weighting {
    /// Its kind.
    pub fn name(&self) -> WeightingName {
        match self {
            Weighting::Decay(curve) => curve.family().into(),
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
    pub fn weights(&self, tokens: &[TokenStats], context: &WeightContext) -> Vec<f64> {
        let n = tokens.len();
        let positional = |curve: Curve| (1..=n).map(move |t| curve.weight(t, n));
        match *self {
            Weighting::Decay(curve) => positional(curve).collect(),
            Weighting::Reverse(curve) => positional(curve).rev().collect(),
            Weighting::Random { curve, seed } => shuffled(positional(curve).collect(), seed, context.text),
            Weighting::EntropySample => relative_to_largest(tokens.iter().map(TokenStats::entropy).collect()),
            Weighting::EntropyDataset => first_weights(n, context.dataset),
            Weighting::Slope => {
                let alpha = slope(tokens);
                (1..=n).map(|t| Decay::Linear.weight(alpha, t, n)).collect()
            }
        }
    }
}
