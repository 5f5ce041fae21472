//! Membership inference: was a text in a language model's training data?
//!
//! Everything here is arithmetic on [`TokenStats`], the four numbers per token that a forward pass gives: [`methods`] turn
//! them into scores, [`statistics`] say how well scores separate members from non-members, and [`texts`] tell when two
//! texts count as one. No I/O, no model.

#![deny(unsafe_code)]

pub mod json;
pub mod methods;
pub mod random;
pub mod statistics;
pub mod texts;
mod token_stats;

pub use token_stats::{TokenStats, VARIANCE_FLOOR};
