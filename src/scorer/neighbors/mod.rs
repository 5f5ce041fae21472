//! Neighbours of a text: the same text with one word replaced by what a masked model finds most likely in its place.
//!
//! Each whole word of the text is masked in turn, in a copy of its own; what the model would put there becomes a list of
//! substitutions, the best of which make the neighbours. The same model, text and count always give the same ones.

mod cache;
mod substitution;
#[cfg(test)]
mod tests;

pub use cache::{SubstitutionCache, Substitutions};
pub use substitution::{CANDIDATES, GeneratedNeighbor, Site, rank, replaced, sites};
