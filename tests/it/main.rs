//! The tests of the service from outside, in one program: every test program is linked anew, with all dependencies.
//!
//! A module tests a resource or a property. What needs a process of its own is run in a child process by
//! [`common::alone`]. Tests of the kernels for GPUs are programs of their own, `tests/cuda/` for its feature and
//! `tests/cuda_emulation/` for the C++ compiler that it needs.

mod access;
mod access_record;
mod adapters;
mod audit_life;
mod audit_scores;
mod audits;
mod calibrations;
mod canaries;
mod chat;
mod cli;
mod common;
mod connections;
mod contexts;
mod continuation;
mod count_tokens;
mod datasets;
mod demo;
#[cfg(unix)]
mod disk_cache;
#[cfg(unix)]
mod durable;
mod echo;
mod errors;
mod faults;
mod files;
#[cfg(unix)]
mod finetunes;
mod gguf;
mod goldens;
#[cfg(unix)]
mod hangup;
mod hub;
mod inference;
mod large_answers;
mod limits;
#[cfg(unix)]
mod memorization;
#[cfg(target_os = "linux")]
mod memory;
mod meta;
mod neighbors;
mod openapi;
mod ownership;
mod paper;
mod plans;
mod pool;
mod reports;
mod score;
mod served;
mod shares;
#[cfg(unix)]
mod store_faults;
mod streaming;
mod structure;
mod token_stats;
mod trials;
mod verdict;
mod verify;
mod works;
