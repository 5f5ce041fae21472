//! Language models on candle: from the files that a publisher saved to [`TokenStats`](mia::TokenStats) per scored position or, for a
//! masked model, to predictions for masked positions.
//!
//! `config.json` becomes an [`arch::Arch`] (plain data), the tensors of the [`checkpoint::Checkpoint`] get canonical
//! names and shapes, and one [`decoder::Decoder`] runs every decoder family. Nothing above this layer handles tensors.

pub mod arch;
mod assembly;
mod attention;
pub mod batch;
pub mod checkpoint;
mod config_reader;
pub mod continuation;
pub mod cuda;
pub mod decoder;
pub mod demo;
pub mod device;
pub mod end_tokens;
mod error;
pub mod families;
pub mod files;
pub mod footprint;
pub mod gguf;
mod greedy;
mod layer;
pub mod layers;
pub mod logit_stats;
pub mod lora;
pub mod mamba;
pub mod masked;
mod model;
pub mod ops;
mod positioned;
pub mod precision;
pub mod rotary;
mod rows;
pub mod stamp;
mod storage;
pub mod torch_bin;
pub mod tuning;
pub mod weights;

pub use batch::BatchStats;
pub use continuation::{Continuation, Ending, GreedyPrompt};
pub use error::ModelError;
pub use model::{CausalLm, LayerProgress, LayerWatch, LoadedModel, MaskedLm, Pending};
