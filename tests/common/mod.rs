//! What several test files share.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod app;
pub mod client;
pub mod goldens;
pub mod gpt2;
pub mod hub_server;
#[cfg(target_os = "linux")]
pub mod resident;
