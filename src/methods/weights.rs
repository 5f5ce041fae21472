//! Positional decay: the weights of PDR (arXiv 2601.06827).

use super::range::Range;
use serde::Serialize;
use std::fmt;
use utoipa::ToSchema;

/// How a weight falls with the position of its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decay {
    /// `w(t) = 1 - alpha (t-1)/(n-1)` (LPDR).
    Linear,
    /// `w(t) = exp(-alpha (t-1))` (EPDR).
    Exponential,
    /// `w(t) = (1 - (t-1)/(n-1))^alpha` (PPDR); a larger alpha decays faster.
    Polynomial,
}

impl Decay {
    /// Every decay, in the order in which they are listed to clients.
    pub const ALL: [Decay; 3] = [Decay::Linear, Decay::Exponential, Decay::Polynomial];

    /// The name that clients use.
    pub fn name(self) -> &'static str {
        match self {
            Decay::Linear => "linear",
            Decay::Exponential => "exponential",
            Decay::Polynomial => "polynomial",
        }
    }

    /// The decay of that name, if there is one.
    pub fn from_name(name: &str) -> Option<Decay> {
        Self::ALL.into_iter().find(|decay| decay.name() == name)
    }

    /// The values of alpha for which the weights are meant: an alpha of 0 is the base score, which the
    /// polynomial cannot express at its last position (0^0).
    pub fn alpha_range(self) -> Range {
        match self {
            Decay::Linear => Range { minimum: 0.0, exclusive_minimum: false, maximum: Some(1.0) },
            Decay::Exponential => Range { minimum: 0.0, exclusive_minimum: false, maximum: None },
            Decay::Polynomial => Range { minimum: 0.0, exclusive_minimum: true, maximum: None },
        }
    }
}

impl fmt::Display for Decay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Positional decay with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub struct Pdr {
    decay: Decay,
    alpha: f64,
    normalize: bool,
}

impl Pdr {
    /// Linear decay from 1 down to 0, the paper's plainest setting.
    pub const LINEAR: Pdr = Pdr { decay: Decay::Linear, alpha: 1.0, normalize: false };

    /// `None` if `alpha` is outside [`Decay::alpha_range`].
    pub fn new(decay: Decay, alpha: f64, normalize: bool) -> Option<Pdr> {
        decay.alpha_range().contains(alpha).then_some(Pdr {
            decay,
            // A negative zero becomes a positive one, so that no label reads `alpha=-0`.
            alpha: alpha + 0.0,
            normalize,
        })
    }

    /// How the weights fall.
    pub fn decay(&self) -> Decay {
        self.decay
    }

    /// How fast the weights fall.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Whether the weighted sum is divided by the sum of the weights instead of the number of tokens.
    pub fn normalize(&self) -> bool {
        self.normalize
    }

    /// The weight of position `t` of `n`, `1 <= t <= n`; in [0, 1].
    ///
    /// It is exactly 1 at the first position, everywhere if `alpha` is 0, and where `n = 1`, for which the
    /// formulas of the linear and the polynomial decay are 0/0.
    pub fn weight(&self, t: usize, n: usize) -> f64 {
        if n <= 1 {
            return 1.0;
        }
        let steps = t.saturating_sub(1) as f64;
        let way = steps / (n - 1) as f64;
        match self.decay {
            Decay::Linear => 1.0 - self.alpha * way,
            Decay::Exponential => (-self.alpha * steps).exp(),
            Decay::Polynomial => (1.0 - way).powf(self.alpha),
        }
    }
}

/// The part of a label: `linear(alpha=1)`, `exponential(alpha=0.02,normalize)`.
impl fmt::Display for Pdr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let normalize = if self.normalize { ",normalize" } else { "" };
        write!(f, "{}(alpha={}{normalize})", self.decay, self.alpha)
    }
}
