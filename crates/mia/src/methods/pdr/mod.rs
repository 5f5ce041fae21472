//! Positional decay reweighting (PDR, arXiv 2601.06827) and the weightings that its paper compares it with.

mod decay;
mod entropy;
mod random;
mod reader;
mod request;
mod select;
mod settings;
mod slope;
mod weighting;
mod words;

pub use decay::{Curve, Decay};
pub use entropy::dataset_weights;
pub use reader::PdrReader;
pub use request::PdrRequest;
pub use select::Select;
pub use settings::Pdr;
pub use slope::slope;
pub use weighting::{WeightContext, Weighting, WeightingName};
pub use words::{WeightingEntry, weighting_entry};
