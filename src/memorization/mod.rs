//! Extraction evidence: how likely a model is to complete windows of a text word by word, beside a text that it cannot have seen.
//!
//! [`run`] measures texts; the command line calls it. [`MemorizationKind`] runs the jobs of a service. The numbers of a
//! window are computed in `extraction.rs`, and the coverage of a text by the windows in `coverage.rs`.

mod coverage;
mod error;
mod extraction;
mod failure;
mod jobs;
mod reading;
mod report;
mod request;
mod run;
mod subject;
mod summary;
mod text_extraction;
mod window_scorer;
mod windows;
mod work;

pub use error::MemorizationError;
pub use extraction::ExtractionWindow;
pub use jobs::MemorizationKind;
pub use report::{ExtractionSummaries, MemorizationReport};
pub use request::{MOST_TEXTS, MemorizationRequest, WindowShape, WorkText};
pub use run::{MemorizationProgress, run};
pub use subject::MemorizationSubject;
pub use summary::ExtractionSummary;
pub use text_extraction::TextExtraction;
pub use window_scorer::WindowScorer;
