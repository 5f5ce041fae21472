//! p-values of an audit's texts against known non-members, and the list of texts at a stated false discovery rate.

mod decide;
mod known;
mod rows;
mod words;

pub use rows::add_decisions;
pub use words::shift_from_calibration;
