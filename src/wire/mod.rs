//! How values from clients are read beside [`mia::json`], and how values are written that other programs might take for more
//! than they are.

mod compact_json;
mod quoted;
mod shaped;
mod spreadsheet;

pub use compact_json::CompactObject;
pub use quoted::quoted;
pub use shaped::{ShapeFault, Shaped, in_words, pointer, without_place};
pub use spreadsheet::inert;
