//! Files written by torch, compared with what Python read from them.

use super::*;
use safetensors::{Dtype, SafeTensors};
use sha2::{Digest, Sha256};

fn named<'t>(tensors: &'t [StoredTensor], name: &str) -> &'t StoredTensor {
    tensors.iter().find(|tensor| tensor.name == name).unwrap()
}

/// Asserts that every tensor of a file equals the one of `mixed.safetensors`, byte for byte.
fn assert_mixed(name: &str) {
    let (file, safetensors) = (fixture(name), fixture("mixed.safetensors"));
    let (tensors, expected) = (read(&file).unwrap(), SafeTensors::deserialize(&safetensors).unwrap());
    assert_eq!(tensors.len(), expected.len());
    for tensor in &tensors {
        let view = expected.tensor(&tensor.name).unwrap();
        assert_eq!((tensor.dtype, tensor.shape.as_slice()), (view.dtype(), view.shape()), "{}", tensor.name);
        assert_eq!(tensor.elements(&file[tensor.data.clone()]), view.data(), "{}", tensor.name);
    }
}

#[test]
fn every_kind_of_tensor_is_read() {
    assert_mixed("mixed.bin");
}

#[test]
fn protocol_4_is_read() {
    assert_mixed("protocol4.bin");
}

#[test]
fn views_keep_their_strides_and_only_they_are_copied() {
    let file = fixture("mixed.bin");
    let tensors = read(&file).unwrap();
    assert_eq!(named(&tensors, "transposed").strides, [1, 4]);
    assert_eq!(named(&tensors, "tied").data, named(&tensors, "f32").data);
    let is_borrowed = |name| {
        let tensor = named(&tensors, name);
        matches!(tensor.elements(&file[tensor.data.clone()]), std::borrow::Cow::Borrowed(_))
    };
    for name in ["f32", "bf16", "scalar", "empty", "tied", "parameter"] {
        assert!(is_borrowed(name), "{name}");
    }
    for name in ["transposed", "offset", "stepped", "permuted"] {
        assert!(!is_borrowed(name), "{name}");
    }
}

#[test]
fn the_opt_golden_is_read_whole() {
    let file = std::fs::read(fixtures().join("goldens/opt-post-proj/pytorch_model.bin")).unwrap();
    let expected: serde_json::Value = serde_json::from_slice(&fixture("opt-post-proj.json")).unwrap();
    let tensors = read(&file).unwrap();
    assert_eq!(tensors.len(), expected.as_object().unwrap().len());
    for tensor in &tensors {
        let digest: String =
            Sha256::digest(tensor.elements(&file[tensor.data.clone()])).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(expected[&tensor.name]["sha256"], digest, "{}", tensor.name);
        assert_eq!(expected[&tensor.name]["shape"], serde_json::json!(tensor.shape), "{}", tensor.name);
        assert_eq!(tensor.dtype, Dtype::F32);
    }
    let tied = named(&tensors, "model.decoder.embed_tokens.weight").clone();
    assert_eq!(*named(&tensors, "lm_head.weight"), StoredTensor { name: "lm_head.weight".into(), ..tied });
}

#[test]
fn a_state_dict_may_stand_alone_under_a_key() {
    let file = fixture("wrapped.bin");
    let tensors = read(&file).unwrap();
    let a = named(&tensors, "a");
    assert_eq!(a.elements(&file[a.data.clone()]), [1f32.to_le_bytes(), 2f32.to_le_bytes()].concat());
}

#[test]
fn what_is_no_tensor_is_refused_by_its_key() {
    let error = read(&fixture("epoch.bin")).unwrap_err().to_string();
    assert_eq!(error, "`epoch`: expected a tensor, found a number");
}

#[test]
fn the_format_before_1_6_is_refused_with_a_remedy() {
    let error = read(&fixture("legacy.bin")).unwrap_err();
    assert_eq!(error, TorchBinError::Legacy);
    assert!(error.to_string().contains("safe_serialization=True"));
}

#[test]
fn the_largest_zip_records_are_read() {
    // zip64, as torch writes it for every entry of a large file.
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored).large_file(true);
    let pickle = dict(&[("a", tensor(4, 0, &[4], &[1]))]);
    for (name, content) in [("x/data.pkl", &pickle[..]), ("x/data/0", &[1; 16])] {
        zip.start_file(name, options).unwrap();
        zip.write_all(content).unwrap();
    }
    let file = zip.finish().unwrap().into_inner();
    assert_eq!(*read(&file).unwrap()[0].elements(&file[read(&file).unwrap()[0].data.clone()]), [1; 16]);
}
