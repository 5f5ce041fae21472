//! Models from outside: every family against the reference, on every path that instructions and forms can take. One program, since each is linked anew with all dependencies; what needs a process
//! of its own is run in a child process by [`common::alone`].

mod chat;
mod checkpoints;
mod common;
mod continuation;
mod dispatch;
mod gguf;
mod gradients;
mod invariance;
mod mamba;
mod numerics_stamp;
mod outliers;
mod parity;
#[cfg(target_os = "linux")]
mod peak_memory;
mod streaming;

/// The allocator of the service, whose memory the tests measure.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
