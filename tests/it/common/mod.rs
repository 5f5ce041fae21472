//! Helpers shared by several test modules.

#[path = "../../../crates/lm/tests/it/common/alone.rs"]
pub mod alone;
pub mod app;
pub mod client;
#[path = "../../../crates/lm/tests/it/common/goldens.rs"]
pub mod goldens;
#[path = "../../../crates/lm/tests/it/common/gpt2.rs"]
pub mod gpt2;
pub mod hub_server;
pub mod keys;
pub mod relay;
#[path = "../../../crates/lm/tests/it/common/resident.rs"]
#[cfg(target_os = "linux")]
pub mod resident;
#[cfg(unix)]
pub mod service;
pub mod tampered;
