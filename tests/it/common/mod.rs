//! What several test modules share.

pub mod alone;
pub mod app;
pub mod client;
pub mod goldens;
pub mod gpt2;
pub mod hub_server;
pub mod keys;
pub mod outliers;
pub mod relay;
#[cfg(target_os = "linux")]
pub mod resident;
#[cfg(unix)]
pub mod service;
pub mod tampered;
