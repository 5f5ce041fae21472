//! The tests of the service from outside, in one program: every test program is linked anew, with all dependencies.
//!
//! A module tests a resource or a property. What needs a process of its own is run in a child process by
//! [`common::alone`]. Tests of the kernels for GPUs are programs of their own, `tests/cuda/` for its feature and
//! `tests/cuda_emulation/` for the C++ compiler that it needs.

mod access;
mod adapters;
mod audit_life;
mod audit_scores;
mod audits;
mod calibrations;
mod checkpoints;
mod cli;
mod common;
mod connections;
mod count_tokens;
mod datasets;
mod demo;
#[cfg(unix)]
mod disk_cache;
mod dispatch;
#[cfg(unix)]
mod durable;
mod errors;
mod faults;
mod files;
#[cfg(unix)]
mod finetunes;
mod goldens;
mod gradients;
#[cfg(unix)]
mod hangup;
mod hub;
mod invariance;
mod large_answers;
mod limits;
mod mamba;
#[cfg(unix)]
mod memorization;
#[cfg(target_os = "linux")]
mod memory;
mod meta;
mod neighbors;
mod numerics_stamp;
mod openapi;
mod outliers;
mod ownership;
mod paper;
mod parity;
#[cfg(target_os = "linux")]
mod peak_memory;
mod pool;
mod score;
mod served;
#[cfg(unix)]
mod store_faults;
mod structure;
mod token_stats;
mod trials;
mod verdict;
