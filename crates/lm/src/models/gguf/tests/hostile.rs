use super::*;

fn check(bytes: &[u8], says: &str) {
    let said = refusal(bytes);
    assert!(said.contains(says), "expected {says:?} in: {said}");
}

#[test]
fn what_is_no_file_of_a_version_that_is_read_is_refused() {
    check(b"", "cut off after 0 bytes");
    check(b"GGML....", "does not begin with `GGUF`");
    check(&Writer { version: 1, ..Writer::llama() }.bytes(), "version 1 of the format is not supported");
    check(&Writer { version: 3u32.swap_bytes(), ..Writer::llama() }.bytes(), "big-endian");
}

#[test]
fn counts_and_lengths_beyond_the_file_take_no_memory() {
    let file = Writer::llama();
    for huge in [1 << 63, u64::MAX, 1 << 40] {
        check(&file.bytes_of(huge, 7), "");
        check(&file.bytes_of(1, huge), "");
    }
    let long = |kind: u32, length: u64| entry("a", kind, &length.to_le_bytes());
    check(&Writer::llama().with(long(8, u64::MAX)).bytes(), "metadata key `a`: the file is cut off");
    for kind in [0, 4, 8, 10, 12] {
        let array = [&kind_bytes(kind)[..], &u64::MAX.to_le_bytes()].concat();
        check(&Writer::llama().with(entry("a", 9, &array)).bytes(), "metadata key `a`: the file is cut off");
    }
}

fn kind_bytes(kind: u32) -> [u8; 4] {
    kind.to_le_bytes()
}

#[test]
fn a_header_of_any_length_is_cut_short() {
    let bytes =
        Writer::llama().with(entry("a", 9, &[&kind_bytes(0)[..], &(1u64 << 30).to_le_bytes()].concat())).bytes();
    let long = [&bytes[..], &vec![0; 100_000_000]].concat();
    check(&long, "the header is longer than 100000000 bytes");
}

#[test]
fn no_prefix_of_a_file_is_read_as_one() {
    let bytes = Writer::llama().bytes();
    for end in 0..bytes.len() {
        assert!(!refusal(&bytes[..end]).is_empty());
    }
}

#[test]
fn metadata_that_are_no_values_are_refused_by_their_keys() {
    let with = |entry| Writer::llama().with(entry).bytes();
    check(&with(entry("a", 13, &[])), "metadata key `a`: type 13 is unknown");
    check(&with(entry("a", 7, &[2])), "metadata key `a`: expected true or false, found the byte 2");
    check(&with(number("a", f32::NAN)), "metadata key `a`: NaN is not a number");
    check(&with(array("a", 9, &[])), "metadata key `a`: arrays of arrays are not supported");
    check(&with(array("a", 99, &[])), "metadata key `a`: elements of type 99 are unknown");
    check(&with(entry("a", 8, &[&1u64.to_le_bytes()[..], &[0xff]].concat())), "invalid utf-8");
    check(&with(count("llama.block_count", 2)), "metadata key `llama.block_count`: is listed twice");
    check(&with(count("split.count", 3)), "metadata key `split.count`: the model is split into 3 files");
    check(&with(string("general.type", "mmproj")), "the file holds a mmproj");
    check(&with(count("general.alignment", 0)), "metadata key `general.alignment`: 0 is not a power of two");
    check(&with(count("general.alignment", 24)), "24 is not a power of two");
    check(&with(entry("general.alignment", 10, &(1u64 << 63).to_le_bytes())), "is not within the file");
}

#[test]
fn tensors_that_do_not_fit_the_file_are_refused_by_name() {
    let with = |tensors: &[Vec<u8>]| Writer::llama().with_tensors(tensors).bytes();
    let one = |dimensions: &[u64], kind, offset| with(&[tensor("t", dimensions, kind, offset)]);
    check(&one(&[65], 0, 0), "tensor `t`: is not within the file");
    check(&one(&[8], 0, 1 << 40), "tensor `t`: is not within the file");
    check(&one(&[8], 0, u64::MAX - 31), "tensor `t`: is outside the file");
    check(&one(&[8], 0, 8), "tensor `t`: offset 8 is no multiple of 32");
    check(&one(&[8], 99, 0), "tensor `t`: type 99 is not supported; supported: F32, F16, BF16, Q4_0");
    check(&one(&[256], 16, 0), "type IQ2_XXS is not supported");
    check(&one(&[40], 8, 0), "rows of 40 elements are not whole Q8_0 blocks of 32");
    check(&one(&[128, 2], 12, 0), "rows of 128 elements are not whole Q4_K blocks of 256");
    check(&one(&[1 << 32, 1 << 32], 0, 0), "is larger than any memory");
    check(&one(&[1 << 62, 2, 2], 0, 0), "is larger than any memory");
    check(&one(&[1 << 62], 0, 0), "is larger than any memory");
    check(&one(&[], 0, 0), "has 0 dimensions");
    check(&one(&[1; 5], 0, 0), "has 5 dimensions");
    check(&with(&[tensor("t", &[8], 0, 0), tensor("t", &[8], 0, 32)]), "tensor `t`: is listed twice");
    check(&with(&[tensor("t", &[16], 0, 0), tensor("u", &[8], 0, 32)]), "tensor `u`: overlaps tensor `t`");
    check(&with(&[tensor("t", &[8], 0, 0)]), "tensor `token_embd.weight`: missing");
}
