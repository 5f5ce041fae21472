//! Tensors that exceed their storage, storages that are not in the zip, and zips that torch did not write.

use super::*;

/// The error for one tensor over a storage of four floats.
fn refused(count: i64, offset: i64, shape: &[i64], strides: &[i64]) -> String {
    refusal(&dict(&[("a", tensor(count, offset, shape, strides))]))
}

#[test]
fn a_tensor_is_within_its_storage() {
    let fits = |offset, shape: &[i64], strides: &[i64]| {
        let file = build_file(&dict(&[("a", tensor(4, offset, shape, strides))]));
        read(&file).map(|tensors| tensors[0].elements(&file[tensors[0].data.clone()]).len())
    };
    assert_eq!(fits(0, &[4], &[1]), Ok(16));
    assert_eq!(fits(3, &[], &[]), Ok(4));
    assert_eq!(fits(1, &[2], &[2]), Ok(8));
    assert_eq!(fits(4, &[0], &[1]), Ok(0));
    assert_eq!(fits(0, &[0, i64::MAX], &[i64::MAX, i64::MAX]), Ok(0));
    for (offset, shape, strides) in [
        (0, &[5][..], &[1][..]),
        (1, &[4], &[1]),
        (4, &[], &[]),
        (5, &[0], &[1]),
        (0, &[2], &[4]),
        (i64::MAX, &[1], &[1]),
        (0, &[i64::MAX, i64::MAX], &[i64::MAX, 1]),
        (0, &[2, 2], &[i64::MAX, i64::MAX]),
    ] {
        let error = refused(4, offset, shape, strides);
        assert!(error.starts_with("`a`: ") && error.contains("exceeds its storage of 4 elements"), "{error}");
    }
}

#[test]
fn negative_numbers_and_unequal_ranks_are_refused() {
    assert_eq!(refused(4, 0, &[-1], &[1]), "`a`: shape [-1] is invalid");
    assert_eq!(refused(4, 0, &[1], &[-1]), "`a`: strides [-1] are invalid");
    assert_eq!(refused(4, -1, &[1], &[1]), "`a`: offset -1 is invalid");
    assert!(refused(4, 0, &[1], &[1, 1]).contains("different numbers of dimensions"));
    assert!(refused(-4, 0, &[1], &[1]).contains("does not match -4 elements"));
}

#[test]
fn a_few_bytes_do_not_represent_much_memory() {
    for shape in [&[5][..], &[1 << 40], &[1 << 40, 1 << 40]] {
        let error = refused(4, 0, shape, &vec![0; shape.len()]);
        assert!(error.contains("more elements than its storage of 4 elements"), "{error}");
    }
    assert!(refused(4, 0, &[i64::MAX, 3, 0], &[0, 0, 0]).contains("more elements than its storage"));
}

#[test]
fn a_storage_has_the_size_given_in_the_pickle() {
    for count in [3, 5, 1 << 62, i64::MAX] {
        let error = refused(count, 0, &[1], &[1]);
        assert_eq!(error, format!("`a`: storage `data/0` has 16 bytes, which does not match {count} elements of F32"));
    }
    let pickle = dict(&[("a", tensor(4, 0, &[4], &[1]))]);
    let error = read(&build_zip(&[("x/data.pkl", &pickle), ("x/data/1", &[0; 16])])).unwrap_err();
    assert_eq!(error.to_string(), "`a`: there is no zip entry `data/0`");
}

#[test]
fn a_name_refers_to_one_tensor() {
    let view = tensor(4, 0, &[4], &[1]);
    assert_eq!(refusal(&dict(&[("a", view.clone()), ("a", view.clone())])), "`a`: the name is listed twice");
    let unnamed = [b"\x80\x02}(K\x01".to_vec(), view, b"u.".to_vec()].concat();
    assert_eq!(refusal(&unnamed), "`(top level)`: expected a string as a key, found a number");
}

#[test]
fn only_what_torch_saves_is_a_torch_file() {
    let pickle = dict(&[]);
    let error = |entries: &[(&str, &[u8])]| read(&build_zip(entries)).unwrap_err().to_string();
    assert!(error(&[]).contains("no `data.pkl`"));
    assert!(error(&[("data.pkl", &pickle)]).contains("no `data.pkl`"));
    assert!(error(&[("a/b/data.pkl", &pickle)]).contains("no `data.pkl`"));
    assert!(error(&[("a/data.pkl", &pickle), ("b/data.pkl", &pickle)]).contains("only one pickle is supported"));
    assert!(error(&[("a/data.pkl", &pickle), ("a/byteorder", b"big")]).contains("little-endian"));
    assert!(error(&[("a/data.pkl", &vec![b'('; (8 << 20) + 1])]).contains("exceeds the maximum of 8 MiB"));
    for other in
        [&b""[..], b"PK\x05\x06", b"\x80\x02}.", b"version https://git-lfs.github.com/spec/v1\n", &[0; 100_000]]
    {
        assert!(matches!(read(other), Err(TorchBinError::NotTorch(_))));
    }
}

/// The start of an entry's record in the central directory.
fn record(zip: &[u8], index: usize) -> usize {
    zip.windows(4).enumerate().filter(|(_, w)| *w == b"PK\x01\x02").nth(index).unwrap().0
}

/// The error for a zip of one tensor with a change in the storage's record.
fn changed(offset: usize, bytes: &[u8]) -> String {
    let mut zip = build_file(&dict(&[("a", tensor(4, 0, &[4], &[1]))]));
    let start = record(&zip, 2) + offset;
    zip[start..start + bytes.len()].copy_from_slice(bytes);
    read(&zip).unwrap_err().to_string()
}

#[test]
fn entries_are_uncompressed_and_within_the_file() {
    assert!(changed(10, &8u16.to_le_bytes()).contains("zip entry `x/data/0`: compressed"));
    assert!(changed(8, &1u16.to_le_bytes()).contains("encrypted"));
    assert!(changed(24, &17u32.to_le_bytes()).contains("two different sizes"));
    let sizes = |size: u32| [size.to_le_bytes(), size.to_le_bytes()].concat();
    assert!(changed(20, &sizes(1 << 30)).contains("extends beyond the file"));
    assert!(changed(20, &sizes(15)).contains("has 15 bytes, which does not match 4 elements"));
    assert!(changed(42, &(1u32 << 31).to_le_bytes()).contains("not a file of PyTorch weights"));
}

/// A zip64 directory that claims 2^40 entries must not cause an allocation for them.
#[test]
fn a_directory_with_absurd_counts_is_refused() {
    let mut zip = build_file(&dict(&[]));
    let end = zip.windows(4).position(|w| w == b"PK\x05\x06").unwrap();
    zip.truncate(end);
    let mut record = b"PK\x06\x06".to_vec();
    record.extend(44u64.to_le_bytes());
    record.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for number in [1u64 << 40, 1 << 40, u64::MAX / 2, 0] {
        record.extend(number.to_le_bytes());
    }
    record.extend(b"PK\x06\x07\0\0\0\0");
    record.extend((end as u64).to_le_bytes());
    record.extend(1u32.to_le_bytes());
    record.extend(b"PK\x05\x06\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0");
    zip.extend(record);
    assert!(matches!(read(&zip), Err(TorchBinError::NotTorch(_))));
}

#[test]
fn two_entries_of_one_name_are_refused() {
    let pickle = dict(&[("a", tensor(4, 0, &[4], &[1]))]);
    let mut zip = build_zip(&[("x/data.pkl", &pickle), ("x/data/0", &[0; 16]), ("x/data/1", &[1; 16])]);
    while let Some(start) = zip.windows(8).position(|w| w == b"x/data/1") {
        zip[start + 7] = b'0';
    }
    assert!(read(&zip).unwrap_err().to_string().contains("the same name"));
}
