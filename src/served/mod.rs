//! Models that other processes run: a server at a URL takes token ids and answers with the statistics of every token.
//!
//! To the engine each URL is a device, and [`served_model`] is the model on it. What can be wrong with an answer is one of three
//! things:
//!
//! - the batch is too large for the server ([`ModelError::OutOfMemory`]): a smaller one may fit;
//! - these sequences cannot be run ([`ModelError::Forward`]);
//! - the server is gone, busy, or not the one it was ([`ModelError::Unavailable`]): the same batch may run later, or at another
//!   URL. An answer that is cut off or does not make sense is one of these too, since it says nothing of the texts.
//!
//! Invariants:
//!
//! - an answer counts only if it is from the model that was opened, and as a whole;
//! - URLs come from the settings alone, redirects are not followed, and no URL is part of an error;
//! - nothing larger is read than the question explains.
//!
//! [`ModelError::OutOfMemory`]: lm::models::ModelError::OutOfMemory
//! [`ModelError::Forward`]: lm::models::ModelError::Forward
//! [`ModelError::Unavailable`]: lm::models::ModelError::Unavailable

mod description;
mod dialect;
mod model;
mod model_cards;
mod openai;
mod openai_answer;
mod openai_opening;
mod openai_requests;
mod pdr_audit;
mod probed;
mod prompt_stats;
mod server;
mod sglang;
mod source;
mod vllm;
mod vllm_continuation;

pub use description::{BackendInfo, ServedDescription, ServedRounding, WeightsAttested};
pub use model::{OpenedModel, served_model};
pub use source::{ServedSource, describe};
