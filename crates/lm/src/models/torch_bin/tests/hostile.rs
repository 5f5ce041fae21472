//! Pickles and files that try to execute code, to exhaust memory, or to break the reader.

use super::*;
use std::time::{Duration, Instant};

#[test]
fn nothing_is_executed() {
    let directory = tempfile::tempdir().unwrap();
    let witness = directory.path().join("witness");
    let command = format!("touch {}", witness.display());
    for module in ["os", "posix", "nt"] {
        let call = [format!("\x63{module}\nsystem\n(").into_bytes(), text(&command), b"tR".to_vec()].concat();
        let expected =
            format!("refers to `{module}.system`, which is not supported in a file of weights; nothing was executed");
        // As a value, as the whole pickle, and before a valid dictionary.
        assert_eq!(refusal(&dict(&[("a", call.clone())])), expected);
        assert_eq!(refusal(&[&b"\x80\x02"[..], &call, b"."].concat()), expected);
        assert_eq!(refusal(&[&b"\x80\x02"[..], &call, &dict(&[])[2..]].concat()), expected);
    }
    assert!(!witness.exists());
}

#[test]
fn only_the_known_names_are_allowed() {
    for (module, name) in [
        ("builtins", "eval"),
        ("builtins", "getattr"),
        ("torch", "load"),
        ("torch", "QInt8Storage"),
        ("torch.storage", "UntypedStorage"),
        ("torch._utils", "_rebuild_tensor"),
        ("torch._tensor", "_rebuild_from_type_v2"),
        ("collections", "OrderedDict.fromkeys"),
        ("collections.OrderedDict", "fromkeys"),
    ] {
        let old = format!("\u{63}{module}\n{name}\n.").into_bytes();
        let new = [text(module), text(name), b"\x93.".to_vec()].concat();
        for global in [old, new] {
            let error = refusal(&[b"\x80\x02", &global[..]].concat());
            assert!(error.starts_with(&format!("refers to `{module}.{name}`")), "{error}");
        }
    }
}

#[test]
fn a_name_in_a_message_is_cut_and_escaped() {
    let error = refusal(format!("\u{63}\u{1b}[31mred{}\nx\n.", "a".repeat(100_000)).as_bytes());
    assert!(error.len() < 400 && error.contains("\\u{1b}[31mred") && error.contains('…'), "{error}");
}

#[test]
fn instructions_outside_the_subset_are_named() {
    for code in [b'0', b'1', b'2', b'P', b'i', b'o', b'I', b'L', b'S', b'T', b'U', b'V', 0x81, 0x82, 0x8b, 0x8f, 0x97] {
        let error = refusal(&[0x80, 2, b'}', code, b'.']);
        assert_eq!(error, format!("data.pkl, byte 3: instruction 0x{code:02x} is not supported in a file of weights"));
    }
    assert_eq!(
        refusal(&[0x80, 5, b'}', b'.']),
        "data.pkl, byte 0: pickle protocol 5 is not supported; supported are 2 to 4"
    );
}

#[test]
fn instructions_do_not_reach_below_a_mark_or_an_empty_stack() {
    for pickle in [
        &b"\x85."[..],
        b"N(\x85.",
        b"NN\x87.",
        b"(\x86.",
        b"t.",
        b"u.",
        b"}u.",
        b"a.",
        b"]a.",
        b"](a.",
        b"s.",
        b"R.",
        b")R.",
        b"b.",
        b"}b.",
        b"Q.",
        b"q\x00.",
        b"\x94.",
        b"\x93.",
        b".",
        b"(.",
        b"}(.",
        b"}}.",
        b"h\x00.",
        b"j\xff\xff\xff\xff.",
        b"}(Nu.",
        b"(Nd.",
        b"]Na.",
        b"}.N",
    ] {
        assert!(read(&build_file(pickle)).is_err(), "{pickle:?}");
    }
}

#[test]
fn calls_with_unsupported_arguments_are_refused() {
    let view = tensor(4, 0, &[4], &[1]);
    let parameter = |tail: &[u8]| [b"ctorch._utils\n_rebuild_parameter\n(", &view[..], tail].concat();
    assert!(read(&build_file(&dict(&[("a", parameter(b"\x88ccollections\nOrderedDict\n)RtR"))]))).is_ok());
    let hooked = [b"\x88}".to_vec(), text("hook"), b"NstR".to_vec()].concat();
    for (value, reason) in [
        (parameter(b"\x88tR"), "RebuildParameter has unsupported arguments"),
        (parameter(&hooked), "a tensor has hooks"),
        (b"ccollections\nOrderedDict\nN\x85R".to_vec(), "OrderedDict has unsupported arguments"),
        (b"ctorch\nFloatStorage\n)R".to_vec(), "Storage(F32) has unsupported arguments"),
        (b"})R".to_vec(), "a dictionary is called"),
        (b"ccollections\nOrderedDict\nNR".to_vec(), "expected a tuple, found None"),
        (b")Q".to_vec(), "a persistent object is not a storage"),
        (b"N}b".to_vec(), "attributes are set on None"),
        (b"}Nb".to_vec(), "attributes are set on a dictionary"),
    ] {
        let error = refusal(&dict(&[("a", value)]));
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn depth_and_size_take_neither_stack_nor_time() {
    let start = Instant::now();
    let million = |code: &[u8]| code.repeat(1_000_000);
    // Tuples and lists nested in each other, and a list that contains itself.
    assert_eq!(refusal(&[b"\x80\x02)", &million(b"\x85")[..], b"."].concat()), TOP_TUPLE);
    assert_eq!(
        refusal(&[&million(b"]")[..], &[b'a'; 999_999], b"."].concat()),
        "`(top level)`: expected a dictionary of tensors, found a list"
    );
    assert!(refusal(b"]q\x00h\x00a.").contains("a list"));
    assert!(refusal(&dict(&[("a", b"}q\x00h\x00h\x00s".to_vec())])).contains("expected a tensor, found a dictionary"));
    // Each tuple contains the previous one twice: 2^100000 elements if any were copied.
    let doubled: Vec<u8> =
        (0..100_000u32).flat_map(|i| [b"r", &i.to_le_bytes()[..], b"j", &i.to_le_bytes(), b"\x86"].concat()).collect();
    assert_eq!(refusal(&[b"\x80\x02)", &doubled[..], b"."].concat()), TOP_TUPLE);
    // A memo with one entry at the largest index.
    assert!(refusal(b"Nr\xff\xff\xff\xff.").contains("None"));
    assert!(refusal(&million(b"(")).contains("ends in the middle"));
    assert!(refusal(b"X\xff\xff\xff\xffabc").contains("ends in the middle"));
    assert!(refusal(b"\x8a\xff").contains("an integer of 255 bytes"));
    assert!(start.elapsed() < Duration::from_secs(20), "took {:?}", start.elapsed());
}

const TOP_TUPLE: &str = "`(top level)`: expected a dictionary of tensors, found a tuple";

#[test]
fn a_long_shape_that_many_tensors_share_is_refused() {
    let shape: Vec<i64> = vec![1; 9];
    assert!(refusal(&dict(&[("a", tensor(4, 0, &shape, &shape))])).contains("a tensor of 9 dimensions"));
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let file = fixture("mixed.bin");
    for length in 0..file.len() {
        let refused = read(&file[..length]).unwrap_err();
        // The last record has 22 bytes; with a part of it the zip is damaged.
        let said = refused.to_string().starts_with(&format!("the file is cut off after {length} bytes"));
        assert_eq!(said, (4..=file.len() - 22 + 3).contains(&length), "cut at {length}: {refused}");
    }
}

/// Whatever a byte is changed to, reading terminates, and the result is within the file.
#[test]
fn no_changed_byte_breaks_the_reader() {
    for name in ["mixed.bin", "protocol4.bin"] {
        let original = fixture(name);
        let mut file = original.clone();
        for index in 0..file.len() {
            for change in [0x01, 0x02, 0x10, 0x40, 0x80, 0xff] {
                file[index] = original[index] ^ change;
                for tensor in read(&file).unwrap_or_default() {
                    assert!(tensor.data.end <= file.len());
                    let bytes = tensor.shape.iter().product::<usize>() * tensor.dtype.bitsize() / 8;
                    assert_eq!(tensor.elements(&file[tensor.data.clone()]).len(), bytes);
                }
            }
            file[index] = original[index];
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(4096))]

    /// Programs of supported instructions, most of them meaningless.
    #[test]
    fn no_program_breaks_the_reader(code in proptest::collection::vec(proptest::sample::select(CODES), 0..60)) {
        let pickle: Vec<u8> = code.concat();
        let _ = read(&build_file(&pickle));
        let _ = read(&build_file(&[pickle, b".".to_vec()].concat()));
    }
}

const CODES: &[&[u8]] = &[
    b"(",
    b"N",
    b"\x88",
    b"K\x02",
    b"K\x00",
    b"J\xff\xff\xff\xff",
    b"X\x07\x00\x00\x00storage",
    b"X\x01\x00\x00\x000",
    b")",
    b"]",
    b"}",
    b"\x85",
    b"\x86",
    b"\x87",
    b"t",
    b"l",
    b"d",
    b"a",
    b"e",
    b"s",
    b"u",
    b"Q",
    b"R",
    b"b",
    b"q\x00",
    b"h\x00",
    b"\x94",
    b"ccollections\nOrderedDict\n",
    b"ctorch\nFloatStorage\n",
    b"ctorch._utils\n_rebuild_tensor_v2\n",
    b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000NK\x04tQ",
];
