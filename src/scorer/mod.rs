//! Texts and methods to scores: what the HTTP service, the audits and the command line share.
//!
//! A request goes through four steps: the models that it names are opened if they were not ([`Bound`]); every text is
//! tokenized, and what its methods look at becomes the smallest set of forward passes (on [`Workers`]); these go through
//! the [`Engine`](crate::engine::Engine), all texts at once; the statistics that come back become scores (on the workers again). A bad text fails
//! alone, and so does a method on a text.

mod bound;
mod cache;
mod continuation;
mod error;
mod generation;
mod handle;
mod passes;
mod plan;
mod result;
mod score;
mod sequences;
mod spans;
mod substitution;
mod text;
mod token_counts;
mod workers;

pub use bound::Bound;
pub use error::{MAX_ANSWER_BYTES, ScorerError, TextError};
pub use generation::Generated;
pub use handle::{IN_FLIGHT, Scorer};
pub use plan::{Overflow, Plan, TunedSplit};
pub use result::{TextResult, TokenDetail, Usage};
pub use score::{Scored, ScoringTimes};
pub use sequences::SequenceStats;
pub use spans::{Spans, render_conversation};
pub use substitution::GeneratedNeighbor;
pub use text::Input;
pub use token_counts::{Counts, CountsError, CountsFault, CountsFile, FORMAT, load_token_counts};
pub use workers::Workers;
