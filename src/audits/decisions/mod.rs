//! p-values of an audit's texts against known non-members, and the list of texts at a stated false discovery rate.

mod compare;
mod decide;
mod known;
mod rows;

pub use compare::comparability_with_calibration;
pub use rows::add_decisions;
