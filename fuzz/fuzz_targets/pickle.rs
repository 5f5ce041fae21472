//! Feeds `pytorch_model.bin`. The first byte chooses: the rest is the whole file, or the pickle within a well-formed zip
//! that has a few storages.
//!
//! No panic, memory bounded by the file, nothing executed, and an error that says what is wrong.

#![no_main]

use libfuzzer_sys::fuzz_target;
use lm::models::torch_bin::read;
use pdr_audit_fuzz::{bound_memory, choice};
use std::io::{Cursor, Write};
use zip::CompressionMethod;
use zip::result::ZipResult;
use zip::write::{SimpleFileOptions, ZipWriter};

/// The storages of the zip: keys, and bytes of each. `seeds` writes pickles for these.
const STORAGES: [(&str, usize); 3] = [("0", 16), ("1", 64), ("2", 0)];

fuzz_target!(init: bound_memory(), |data: &[u8]| {
    match choice(data) {
        Some((choice, file)) if choice % 2 == 0 => check(file),
        Some((_, pickle)) => check(&zipped(pickle).expect("a zip in memory can be written")),
        None => {}
    }
});

fn check(file: &[u8]) {
    match read(file) {
        Ok(tensors) => {
            for tensor in tensors {
                // A view may repeat elements, but has no more of them than its storage.
                assert!(tensor.elements(file).len() <= file.len(), "{tensor:?}");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn zipped(pickle: &[u8]) -> ZipResult<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let mut add = |name: &str, content: &[u8]| {
        zip.start_file(name, SimpleFileOptions::default().compression_method(CompressionMethod::Stored))?;
        zip.write_all(content)?;
        ZipResult::Ok(())
    };
    add("x/data.pkl", pickle)?;
    add("x/byteorder", b"little")?;
    for (key, bytes) in STORAGES {
        add(&format!("x/data/{key}"), &vec![0x3c; bytes])?;
    }
    Ok(zip.finish()?.into_inner())
}
