//! Feeds a file in GGUF: header, metadata, tokenizer and weights. Files that hold together are loaded and run.
//!
//! No panic, memory bounded by the file and not by what its header announces, and an error that says what is wrong.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pdr_audit_fuzz::{bound_memory, open_and_run_gguf};

fuzz_target!(init: bound_memory(), |data: &[u8]| {
    // The error is checked where it arises; a file without a fault is none.
    let _ = open_and_run_gguf(data);
});
