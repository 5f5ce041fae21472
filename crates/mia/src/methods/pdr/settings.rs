//! A weighting, and how its weights are applied.

use super::decay::Curve;
use super::request::{PdrRequest, Select};
use super::weighting::Weighting;
use crate::methods::grid::Grid;
use crate::methods::range::format_number;
use std::fmt;

/// Reweighting of tokens, by position or by one of the ablations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pdr {
    pub weighting: Weighting,
    /// Selection of tokens by raw or by weighted values, for a method that selects.
    pub select: Select,
    /// True if the weighted sum is divided by the sum of the weights instead of the number of tokens.
    pub normalize: bool,
}

impl Pdr {
    /// Linear decay from 1 down to 0, the paper's plainest setting.
    pub const LINEAR: Pdr = Pdr::new(Weighting::Decay(Curve::LINEAR));

    /// Weights applied as the paper applies them.
    pub const fn new(weighting: Weighting) -> Pdr {
        Pdr { weighting, select: Select::After, normalize: false }
    }

    /// The request for it, defaults included. `selects`: whether the method selects tokens, so that `select` means
    /// something.
    pub fn to_request(self, selects: bool) -> PdrRequest {
        let (name, curve) = (self.weighting.name(), self.weighting.curve());
        PdrRequest {
            decay: name.to_string(),
            family: curve.filter(|_| name.takes_family()).map(|curve| curve.family().to_string()),
            alpha: curve.map(|curve| Grid::One(curve.alpha())),
            seed: if let Weighting::Random { seed, .. } = self.weighting { Some(seed) } else { None },
            select: (selects || self.select == Select::Before).then_some(self.select),
            normalize: self.normalize,
        }
    }
}

/// The part of a label: `linear(alpha=1)`, `random(family=linear,alpha=1,seed=0)`, `entropy_sample(normalize)`.
impl fmt::Display for Pdr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.weighting.name();
        let mut parts = Vec::new();
        if let Some(curve) = self.weighting.curve() {
            if name.takes_family() {
                parts.push(format!("family={}", curve.family()));
            }
            parts.push(format!("alpha={}", format_number(curve.alpha())));
        }
        if let Weighting::Random { seed, .. } = self.weighting {
            parts.push(format!("seed={seed}"));
        }
        if self.select == Select::Before {
            parts.push("before".to_owned());
        }
        if self.normalize {
            parts.push("normalize".to_owned());
        }
        match parts.is_empty() {
            true => write!(f, "{name}"),
            false => write!(f, "{name}({})", parts.join(",")),
        }
    }
}
