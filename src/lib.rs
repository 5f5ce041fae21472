//! pdr-audit tells whether a text was in a language model's pre-training data.
//!
//! A text is tokenized, a forward pass of the model is reduced to [`token_stats::TokenStats`], and every method, weighting
//! and statistic is arithmetic on those. Modules are listed from the lowest layer up; each imports only from above itself.

pub mod methods;
pub mod models;
pub mod statistics;
pub mod token_stats;
pub mod tokenizer;
