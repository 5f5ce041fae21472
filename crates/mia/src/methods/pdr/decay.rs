//! Decay of weights with position: the three families of PDR (arXiv 2601.06827).

use crate::methods::range::Range;
use strum::{Display, EnumString, VariantArray};

/// A family of positional decay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display, EnumString, VariantArray)]
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

    /// Family of the decay.
    pub fn family(&self) -> Decay {
        self.family
    }

    /// Rate of the decay.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// The weight of position `t` of `n`, `1 <= t <= n`; in [0, 1].
    pub fn weight(&self, t: usize, n: usize) -> f64 {
        self.family.weight(self.alpha, t, n)
    }
}
