//! What several test files share.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod app;
pub mod client;
pub mod goldens;
pub mod hub_server;
