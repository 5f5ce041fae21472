//! Opening and loading files that have changed since, or have not.

use super::declaration;
use crate::config::DeviceChoice;
use crate::pool::{LocatedFiles, Model};
use lm::models::demo::DEMO;
use lm::models::device::ComputeDevice;
use lm::models::files::ModelFiles;
use std::path::Path;
use std::sync::Arc;

/// The demo in a directory of its own.
fn demo() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let ModelFiles::Embedded(files) = DEMO else { panic!("the demo is a part of the program") };
    for (name, content) in files {
        std::fs::write(directory.path().join(name), content).unwrap();
    }
    directory
}

fn open(directory: &Path, previous: Option<Arc<Model>>) -> Arc<Model> {
    let devices: Arc<[ComputeDevice]> = [ComputeDevice::open(DeviceChoice::Cpu).unwrap()].into();
    let located = LocatedFiles { files: ModelFiles::Directory(directory.to_owned()), commit: None };
    Model::open(&declaration("m", false, &[0]), located, &devices, previous).unwrap()
}

#[test]
fn files_that_have_not_changed_are_not_read_again() {
    let directory = demo();
    let first = open(directory.path(), None);
    assert!(Arc::ptr_eq(&first, &open(directory.path(), Some(Arc::clone(&first)))));
    std::fs::write(directory.path().join("notes.txt"), "another file").unwrap();
    let second = open(directory.path(), Some(Arc::clone(&first)));
    assert!(!Arc::ptr_eq(&first, &second));
    assert_eq!(first.info.digest, second.info.digest, "the same model");
}

/// Rewrites a file in place, with its last byte changed and everything as before that a program can set.
#[cfg(unix)]
fn rewrite(path: &Path) {
    let modified = std::fs::metadata(path).unwrap().modified().unwrap();
    let mut bytes = std::fs::read(path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(path, bytes).unwrap();
    std::fs::File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
}

#[cfg(unix)]
#[test]
fn weights_that_are_not_those_of_the_digest_are_not_loaded() {
    let directory = demo();
    let weights = directory.path().join("model.safetensors");
    let first = open(directory.path(), None);
    (first.load)(0).map(drop).unwrap();
    rewrite(&weights);
    let refusal = (first.load)(0).map(drop).unwrap_err().to_string();
    assert!(refusal.starts_with(&format!("{}: it has changed since", weights.display())), "{refusal}");

    let second = open(directory.path(), Some(Arc::clone(&first)));
    assert_ne!(first.info.digest, second.info.digest);
    (second.load)(0).map(drop).unwrap();
    // A truncation that would end the process through a map is an error here.
    std::fs::File::options().write(true).open(&weights).unwrap().set_len(1_000).unwrap();
    let refusal = (second.load)(0).map(drop).unwrap_err().to_string();
    assert!(refusal.contains("model.safetensors: it has changed since"), "{refusal}");
}
