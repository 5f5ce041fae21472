//! Positional decay reweighting (PDR, arXiv 2601.06827) and the weightings that its paper compares it with.

mod settings;
mod weighting;

pub use settings::{Pdr, PdrRequest, Select};
pub use weighting::{Curve, Decay, WeightContext, Weighting, dataset_weights, slope};
