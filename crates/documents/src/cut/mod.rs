//! The lines of a document to passages.

mod cutter;
mod options;
mod sentences;
mod units;
mod words;

pub use cutter::{CutPassage, Cutter};
pub use options::{Cut, CutAt, CutFault, MAX_WORDS};
pub use words::count_words;
