//! The methods: pure functions from [`TokenStats`](crate::token_stats::TokenStats) and parameters to a score.
//!
//! Three rules hold for all of them:
//!
//! - a higher score means that the text is more likely a member of the training data;
//! - a [`Method`] is valid by construction, so scoring can only fail for reasons that lie in the text;
//! - a score is finite, or it is a [`ScoreError`].
//!
//! A client's wishes come in as [`MethodRequest`], [`resolve()`] turns them into [`LabelledMethod`] or into a list
//! of [`Fault`], and [`score()`] and [`contributions`] do the arithmetic. What [`catalogue()`] says of ranges and
//! defaults is what `resolve` enforces: both read the same constants.
//!
//! Sources of the formulas: loss attack, Yeom et al. 2018; zlib ratio, Carlini et al. 2021; Min-K%, Shi et al.
//! 2024; Min-K%++, Zhang et al. 2024; positional decay (PDR), arXiv 2601.06827.

mod catalogue;
mod fault;
mod labelled;
mod likelihood;
mod method;
mod min_k;
mod range;
mod request;
mod resolve;
mod score;
mod token_counts;
mod weights;

#[cfg(test)]
mod tests;

pub use catalogue::{Access, Catalogue, DecayEntry, MethodEntry, Parameter, ParameterType, catalogue};
pub use fault::Fault;
pub use labelled::{LabelledMethod, default_methods};
pub use likelihood::zlib_bytes;
pub use method::{Base, DEFAULT_K, Method, MethodName};
pub use range::{Fraction, Range};
pub use request::{MethodObject, MethodRequest, PdrRequest, parse_list};
pub use resolve::{MAX_LABEL_CHARS, resolve};
pub use score::{ScoreError, TextStats, contributions, score};
pub use token_counts::{TokenCounts, TokenCountsError};
pub use weights::{Decay, Pdr};
