//! The methods: pure functions from [`TokenStats`](crate::token_stats::TokenStats) and parameters to a score.
//!
//! Three rules hold for all of them:
//!
//! - a higher score means that the text is more likely a member of the training data;
//! - a [`Method`] is valid by construction, so scoring can only fail for reasons that lie in the text;
//! - a score is finite, or it is a [`ScoreError`].
//!
//! A client's wishes come in as [`MethodRequest`], [`resolve()`] turns them into [`LabelledMethod`] or into a list
//! of [`Fault`], and [`score()`] and [`explain`] do the arithmetic. What a method looks at beside the text itself
//! is a [`View`]; whoever asks for its score brings the statistics of its [`Base::views`]. What [`catalogue()`] says of
//! ranges and defaults is what `resolve` enforces: both read the same constants.
//!
//! Sources of the formulas: [`catalogue()`] names one for each method.

mod base;
mod catalogue;
mod decay;
mod fault;
mod grid;
mod labelled;
mod likelihood;
mod method;
mod min_k;
mod name;
mod parameters;
mod pdr;
mod presets;
mod range;
mod request;
mod resolve;
mod scope;
mod score;
mod slope;
mod stored;
mod texts;
mod texts_fit;
mod token_counts;
mod view;
mod weighting;

#[cfg(test)]
mod tests;

pub use base::{Align, Base, NamedCounts, Reading};
pub use catalogue::{Access, Catalogue, MethodEntry, Parameter, ParameterType, PresetEntry, WeightingEntry, catalogue};
pub use decay::{Curve, Decay};
pub use fault::Fault;
pub use grid::Grid;
pub use labelled::{LabelledMethod, default_methods};
pub use likelihood::zlib_bytes;
pub use method::Method;
pub use name::{Decayed, MethodName};
pub use parameters::MOST_NEIGHBORS;
pub use pdr::{Pdr, Select};
pub use presets::{Preset, PresetName};
pub use range::{Fraction, Range};
pub use request::{GeneratorRequest, MethodObject, MethodRequest, PdrRequest, parse_list};
pub use resolve::{MAX_LABEL_CHARS, MAX_METHODS, resolve};
pub use scope::Scope;
pub use score::{Explanation, ScoreError, TextStats, alpha_used, explain, score};
pub use texts::Texts;
pub use texts_fit::{TextAndNeighbors, faults_of_texts};
pub use token_counts::{TokenCounts, TokenCountsError};
pub use view::{Generator, Seen, Unseen, View};
pub use weighting::{Surroundings, Weighting, WeightingName, dataset_weights};
