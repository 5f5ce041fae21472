//! The share of an audit's texts on which the model is tuned for `fsd`.

use super::range::Fraction;
use std::hash::{Hash, Hasher};

/// Which texts of an audit the model is tuned on, and how: with everything else as FSD was published with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Split {
    /// The share of the texts that is left out of scoring; the model is tuned on the non-members among them.
    pub share: Fraction,
    /// Seed of the split and of the tuning.
    pub seed: u64,
}

// A share is a number.
impl Eq for Split {}

impl Hash for Split {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.share.get().to_bits().hash(state);
        self.seed.hash(state);
    }
}
