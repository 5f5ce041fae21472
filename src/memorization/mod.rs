//! Extraction evidence: how likely a model is to complete windows of a text word by word, beside a text that it cannot have seen.
//!
//! [`run`] measures texts; the command line calls it. [`MemorizationKind`] runs the jobs of a service. Windows and the
//! passes that they share are laid out in `passes.rs`; the numbers of a window, and the coverage of a text by its windows, are
//! computed in `extraction.rs`, the place of a text among known works in `known_works.rs`, and greedy continuations are compared
//! with their text in `continuation.rs`.

mod continuation;
mod error;
mod extraction;
mod greedy_run;
mod jobs;
mod known_works;
mod map;
mod passes;
mod report;
mod request;
mod run;
mod window_scorer;

pub use continuation::{ContinuationSettings, SeedPassage};
pub use error::MemorizationError;
pub use extraction::{ExtractionWindow, LEAST_PROBABILITY, TextContinuation, TextExtraction, VerbatimBlock};
pub use greedy_run::GreedyRun;
pub use jobs::{MemorizationKind, MemorizationSubject};
pub use known_works::ControlWorks;
pub use map::{MapFormat, MapSource, MapWindow, RowPlace};
pub use passes::{PassCost, WindowPasses, WindowShape};
pub use report::{ExtractionSummaries, ExtractionSummary, MemorizationReport};
pub use request::{MOST_TEXTS, MemorizationRequest, WorkText};
pub use run::{MemorizationProgress, run};
pub use window_scorer::WindowScorer;
