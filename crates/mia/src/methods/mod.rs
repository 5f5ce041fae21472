//! The methods: pure functions from [`TokenStats`](crate::TokenStats) and parameters to a score.
//!
//! Three rules hold for all of them:
//!
//! - a higher score means that the text is more likely a member of the training data;
//! - a [`Method`] is valid by construction, so scoring can only fail for reasons that lie in the text;
//! - a score is finite, or it is a [`ScoreError`].
//!
//! A method is a file: its type implements [`MethodDefinition`], which is all that there is to say of it, and a line of the
//! registry places it. A client's wishes come in as [`MethodRequest`], [`resolve()`] turns them into [`LabelledMethod`] or
//! into a list of [`Fault`], and [`score()`] and [`explain`] do the arithmetic. Sequences that a method compares the text
//! with are [`AuxiliaryPass`]es; who asks for its score brings their statistics. The ranges and defaults in the
//! [`catalogue()`] are those that `resolve` enforces: both read the same declarations.
//!
//! Sources of the formulas: [`catalogue()`] names one for each method.

mod access;
mod auxiliary_pass;
mod catalogue;
mod con_recall;
mod dc_pdd;
mod definition;
mod ez;
mod fault;
mod formula;
mod fsd;
mod gap_k;
mod grid;
mod label_object;
mod labelled;
mod loss;
mod lowercase;
mod max_k;
mod method;
mod min_k;
mod min_k_plus_plus;
mod neighbor;
mod pac;
mod parameter;
mod pdr;
mod presets;
mod range;
mod recall;
mod reference;
mod registry;
mod request;
mod resolve;
mod schema;
mod scope;
mod surp;
mod text_checks;
mod token_counts;
mod value;
mod wbc;
mod word_swaps;
mod zlib;

#[cfg(test)]
mod tests;

pub use auxiliary_pass::{AuxiliaryPass, AuxiliaryPassError, AuxiliaryStats, Generator, Split, Texts};
pub use catalogue::{Catalogue, MethodEntry, PresetEntry, WeightingEntry, catalogue};
pub use definition::{Access, Definition, MethodDefinition, PdrPolicy};
pub use fault::Fault;
pub use formula::{Explanation, ScoreError, TextStats};
pub use grid::{Grid, MAX_METHODS};
pub use labelled::{
    LabelledMethod, RequestOrigin, auxiliary_passes, control_measures, default_methods, inference_methods,
    possible_default_methods,
};
pub use method::{Method, alpha_used, explain, score};
pub use neighbor::MAX_NEIGHBORS;
pub use parameter::{ParameterEntry, ParameterType};
pub use pdr::{Curve, Decay, Pdr, PdrRequest, Select, WeightContext, Weighting, dataset_weights};
pub use presets::PresetName;
pub use range::{Fraction, Range};
pub use reference::{Ref, Tokenization};
pub use registry::{BaseMethod, MethodName};
pub use request::{MethodObject, MethodRequest, parse_list};
pub use resolve::{MAX_LABEL_CHARS, resolve};
pub use scope::{Scope, Untunable};
pub use text_checks::{TextAndNeighbors, faults_of_texts};
pub use token_counts::{NamedCounts, TokenCounts, TokenCountsError};
pub use word_swaps::WordSwaps;
pub use zlib::zlib_bytes;
