//! Texts and methods to scores: what the HTTP service, the audits and the command line share.
//!
//! A request goes through four steps: the models that it names are opened if they were not ([`Bound`]); every text is
//! tokenized, and what its methods look at becomes the smallest set of forward passes (on [`Workers`]); these go through
//! the [`Engine`](crate::engine::Engine), all texts at once; the statistics that come back become scores (on the workers again). A bad text fails
//! alone, and so does a method on a text.

mod bound;
mod encodings;
mod error;
mod generation;
mod handle;
mod limits;
mod neighbors;
mod overflow;
mod passes;
mod result;
mod scope;
mod score;
mod scored;
mod text;
mod text_error;
mod token_counts;
mod token_sequences;
mod token_stats;
mod windows;
mod workers;

pub use bound::{Bound, Plan, TunedSplit};
pub use error::ScorerError;
pub use generation::Generated;
pub use handle::Scorer;
pub use limits::{IN_FLIGHT, MAX_ANSWER_BYTES};
pub use neighbors::GeneratedNeighbor;
pub use overflow::Overflow;
pub use result::{TextResult, TokenDetail, Usage};
pub use scored::{Scored, ScoringTimes};
pub use text::Input;
pub use text_error::TextError;
pub use token_counts::{Counts, CountsError, CountsFault, CountsFile, FORMAT, load_token_counts};
pub use token_stats::SequenceStats;
pub use workers::Workers;
