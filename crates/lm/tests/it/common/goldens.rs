//! The committed goldens: tiny checkpoints with numbers from the reference implementations.

use serde_json::Value;
use std::path::{Path, PathBuf};

/// Every golden of a causal model.
pub const CAUSAL: [&str; 20] = [
    "gptneox-parallel",
    "gptneox-sequential",
    "gptneox-sharded",
    "gptneox-bf16",
    "gptneox-f16",
    "llama-gqa",
    "llama-linear-rope",
    "llama-tied",
    "mistral",
    "qwen2",
    "qwen3",
    "phi3",
    "gemma2",
    "opt-pre",
    "opt-post-proj",
    "gptj",
    "gpt_neo",
    "gpt2",
    "mamba",
    "mamba2",
];

/// Absolute and relative tolerance of a statistic against the reference: f32 itself strays up to 1.2e-5 from an f64
/// forward of these models, and our sums have another order than the reference's.
pub const STATS: (f64, f64) = (2e-4, 1e-5);

/// The directory of a golden checkpoint: beside the sources, or in `PDR_AUDIT_TEST_GOLDENS` on a machine without them.
pub fn directory(name: &str) -> PathBuf {
    // This file belongs to the tests of two crates.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|above| above.join("tests/fixtures/goldens"));
    let beside = || root.into_iter().find(|goldens| goldens.is_dir()).expect("the goldens are committed");
    std::env::var_os("PDR_AUDIT_TEST_GOLDENS").map_or_else(beside, PathBuf::from).join(name)
}

/// `expected.json` of a golden.
pub fn expected(name: &str) -> Value {
    let bytes = std::fs::read(directory(name).join("expected.json")).expect("the fixture is committed");
    serde_json::from_slice(&bytes).expect("the fixture is JSON")
}

/// The numbers of a JSON array.
pub fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("an array").iter().map(|x| x.as_f64().expect("a number")).collect()
}
