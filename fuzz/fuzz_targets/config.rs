//! Feeds `config.json` beside the weights and the tokenizer of a golden checkpoint, which the first byte chooses, so that
//! every family is reached. Models that load are run.
//!
//! No panic, no memory for sizes that no tensor confirms, and an error that names the key or the tensor.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pdr_audit_fuzz::{bound_memory, choice, goldens, open_and_run};

/// The longest configuration of a golden checkpoint has a tenth of it.
const LONGEST: usize = 16 << 10;

fuzz_target!(init: bound_memory(), |data: &[u8]| {
    let Some((choice, config)) = choice(data).filter(|(_, config)| config.len() <= LONGEST) else { return };
    let golden = &goldens()[choice % goldens().len()];
    // The error is checked where it arises; a configuration without a fault is none.
    let _ = open_and_run(golden.with_config(config));
});
