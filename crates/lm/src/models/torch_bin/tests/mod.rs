//! Files written by torch, and malicious files.

mod hostile;
mod limits;
mod real;

use super::{StoredTensor, TorchBinError, read};
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use zip::write::{SimpleFileOptions, ZipWriter};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures")
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(fixtures().join("torch").join(name)).unwrap()
}

/// A zip with the layout that torch uses.
fn build_zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        zip.start_file(name, SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored)).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A file with this pickle and one storage `0` of 16 bytes.
fn build_file(pickle: &[u8]) -> Vec<u8> {
    build_zip(&[("x/data.pkl", pickle), ("x/byteorder", b"little"), ("x/data/0", &[0; 16])])
}

/// The error for a pickle.
fn refusal(pickle: &[u8]) -> String {
    read(&build_file(pickle)).unwrap_err().to_string()
}

fn text(text: &str) -> Vec<u8> {
    [b"X", &(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

fn int(number: i64) -> Vec<u8> {
    [b"\x8a\x08", &number.to_le_bytes()[..]].concat()
}

fn tuple(numbers: &[i64]) -> Vec<u8> {
    [b"(".to_vec(), numbers.iter().flat_map(|&n| int(n)).collect(), b"t".to_vec()].concat()
}

/// The pickle of one tensor of 32-bit floats over storage `0`.
fn tensor(count: i64, offset: i64, shape: &[i64], strides: &[i64]) -> Vec<u8> {
    let storage =
        [b"(".to_vec(), text("storage"), b"ctorch\nFloatStorage\n".to_vec(), text("0"), text("cpu"), int(count)];
    [
        b"ctorch._utils\n_rebuild_tensor_v2\n(".to_vec(),
        storage.concat(),
        b"tQ".to_vec(),
        int(offset),
        tuple(shape),
        tuple(strides),
        b"\x89ccollections\nOrderedDict\n)RtR".to_vec(),
    ]
    .concat()
}

/// The pickle of a dictionary.
fn dict(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let entries: Vec<u8> = entries.iter().flat_map(|(key, value)| [text(key), value.clone()].concat()).collect();
    [b"\x80\x02}(".to_vec(), entries, b"u.".to_vec()].concat()
}
