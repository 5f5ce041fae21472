//! Helpers shared by several test modules.

/// The variable by which the command line takes the demonstration model for any text.
pub const DEMO_BY_DEFAULT: [(&str, &str); 1] = [("PDR_AUDIT__ENGINE__DEFAULT_MODEL", "demo")];

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
