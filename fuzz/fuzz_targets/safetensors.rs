//! Feeds `model.safetensors` of a GPT-2 that is small enough to be mutated. Files that fit it are loaded and run.
//!
//! No panic, memory bounded by the file and not by what its header announces, and an error that says what is wrong.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pdr_audit_fuzz::{bound_memory, open_and_run};

/// `seeds` writes weights of these sizes.
const CONFIG: &[u8] =
    br#"{"model_type": "gpt2", "vocab_size": 4, "n_embd": 4, "n_head": 2, "n_layer": 1, "n_positions": 4}"#;

const TOKENIZER: &[u8] = br#"{"version": "1.0", "added_tokens": [],
    "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "a": 1, "b": 2, "c": 3}}}"#;

fuzz_target!(init: bound_memory(), |data: &[u8]| {
    let files = [("config.json", CONFIG), ("tokenizer.json", TOKENIZER), ("model.safetensors", data)];
    // The error is checked where it arises; a file without a fault is none.
    let _ = open_and_run(files.map(|(name, content)| (name.to_owned(), content.to_vec())).into());
});
