//! Opening files that have not changed since.

use std::sync::Arc;

use crate::config::{DeviceChoice, Dtype};
use crate::models::demo::DEMO;
use crate::models::device::ComputeDevice;
use crate::models::files::ModelFiles;
use crate::pool::model::Model;
use crate::pool::{Declaration, LocatedFiles, Origin};

#[test]
fn files_that_have_not_changed_are_not_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let ModelFiles::Embedded(files) = DEMO else { panic!("the demo is a part of the program") };
    for (name, content) in files {
        std::fs::write(directory.path().join(name), content).unwrap();
    }
    let declaration = Declaration {
        id: "m".to_owned(),
        origin: Origin::Files(DEMO),
        dtype: Dtype::Auto,
        reference: None,
        eager: false,
        pinned: false,
        devices: vec![0],
    };
    let devices: Arc<[ComputeDevice]> = [ComputeDevice::open(DeviceChoice::Cpu).unwrap()].into();
    let open = |previous| {
        let located = LocatedFiles { files: ModelFiles::Directory(directory.path().to_owned()), commit: None };
        Model::open(&declaration, located, &devices, previous).unwrap()
    };
    let first = open(None);
    assert!(Arc::ptr_eq(&first, &open(Some(Arc::clone(&first)))));
    std::fs::write(directory.path().join("notes.txt"), "another file").unwrap();
    let second = open(Some(Arc::clone(&first)));
    assert!(!Arc::ptr_eq(&first, &second));
    assert_eq!(first.info.digest, second.info.digest, "the same model");
}
