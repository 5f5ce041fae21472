//! Extraction evidence: how likely a model is to complete windows of a text word by word, beside a text that it cannot have seen.
//!
//! [`run`] measures texts; the command line calls it. [`MemorizationKind`] runs the jobs of a service. The numbers of a
//! window, and the coverage of a text by its windows, are computed in `extraction.rs`.

mod error;
mod extraction;
mod jobs;
mod report;
mod request;
mod run;
mod window_scorer;

pub use error::MemorizationError;
pub use extraction::{ExtractionWindow, TextExtraction};
pub use jobs::{MemorizationKind, MemorizationSubject};
pub use report::{ExtractionSummaries, ExtractionSummary, MemorizationReport};
pub use request::{MOST_TEXTS, MemorizationRequest, WindowShape, WorkText};
pub use run::{MemorizationProgress, run};
pub use window_scorer::WindowScorer;
