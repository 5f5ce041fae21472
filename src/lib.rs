//! pdr-audit tells whether a text was in a language model's pre-training data.
//!
//! A text is tokenized, a forward pass of the model is reduced to [`mia::TokenStats`] (crate `lm`), and every method, weighting
//! and statistic is arithmetic on those (crate `mia`). This crate is the service around them. Modules are listed from the
//! lowest layer up; each imports only from above itself.

#![deny(unsafe_code)]

pub mod config;
mod new_file;
mod priority;
mod retry;
pub mod slots;
mod table;
pub mod telemetry;
pub mod wire;

pub mod access;
pub mod server;

pub mod served;

pub mod pool;

pub mod engine;

pub mod scorer;
pub mod store;

pub mod datasets;

pub mod jobs;
pub mod samples;

pub mod audits;
pub mod canaries;
pub mod finetunes;
pub mod memorization;

pub mod api;

pub mod app;
pub mod cli;

/// A forward pass frees and takes megabytes many times over; the system allocator would fault every page in anew, which
/// costs a quarter of the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
