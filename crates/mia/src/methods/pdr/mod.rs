//! Positional decay reweighting (PDR, arXiv 2601.06827) and the weightings that its paper compares it with.

mod decay;
mod reader;
mod request;
mod settings;
mod weighting;
mod words;

pub use decay::{Curve, Decay};
pub use reader::PdrReader;
pub use request::{PdrRequest, Select};
pub use settings::Pdr;
pub use weighting::{WeightContext, Weighting, WeightingName, dataset_weights, slope};
pub use words::{WeightingEntry, weighting_entry};
