//! Reading of values from clients beside [`mia::json`], and writing of values that other programs might take for more
//! than they are.

mod compact_json;
mod quoted;
mod shaped;
mod spreadsheet;

pub use compact_json::CompactObject;
pub use quoted::quoted;
pub use shaped::{ShapeFault, Shaped, in_words, pointer, without_place};
pub use spreadsheet::inert;
