//! Checks of a `precompiled_charsmap`, the normalizer of SentencePiece.
//!
//! A map is a trie of UTF-8 bytes (a double array of the Darts-clone library, 32 bits a unit) after its size in bytes, and then
//! the texts that its leaves point to, each with a zero byte at its end. The `tokenizers` library believes the size and follows
//! the trie wherever it leads, so a map is walked here before the library sees it.

use super::TokenizerError;
use super::checked_normalizer::STEP_GROWTH;
use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;
use serde_json::Value;
use std::collections::VecDeque;

const KEY: &str = "precompiled_charsmap";

/// The library takes maps with and without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Checks every map in the normalizer of a `tokenizer.json`. Other faults of the file are not reported here.
pub fn check(json: &[u8]) -> Result<(), TokenizerError> {
    #[derive(Deserialize)]
    struct WithNormalizer {
        normalizer: Option<Value>,
    }
    let file: WithNormalizer = serde_json::from_slice(json).map_err(|error| TokenizerError(error.to_string()))?;
    file.normalizer.as_ref().map_or(Ok(()), check_in)
}

/// Checks every map in a normalizer, given as JSON.
fn check_in(normalizer: &Value) -> Result<(), TokenizerError> {
    match normalizer {
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| match value {
            Value::String(map) if key == KEY => check_map(map),
            value => check_in(value),
        }),
        Value::Array(parts) => parts.iter().try_for_each(check_in),
        _ => Ok(()),
    }
}

fn check_map(map: &str) -> Result<(), TokenizerError> {
    let growth = growth(map)?;
    if growth <= STEP_GROWTH {
        return Ok(());
    }
    Err(TokenizerError(format!("`{KEY}` makes {growth} bytes of one; the limit is {STEP_GROWTH}")))
}

/// Computes the maximum number of bytes that a map makes of one; at least 1, since what it does not list stays as it is.
fn growth(map: &str) -> Result<usize, TokenizerError> {
    let damaged = |fault: &str| TokenizerError(format!("`{KEY}` is damaged: {fault}"));
    let bytes = BASE64.decode(map).map_err(|error| damaged(&error.to_string()))?;
    let (size, rest) = bytes.split_first_chunk::<4>().ok_or_else(|| damaged("it ends before its trie"))?;
    let size = u32::from_le_bytes(*size) as usize / 4 * 4;
    let (trie, texts) = rest.split_at_checked(size).ok_or_else(|| damaged("it ends within its trie"))?;
    let texts = std::str::from_utf8(texts).map_err(|_| damaged("its texts are not UTF-8"))?;
    let units: Vec<u32> =
        trie.chunks_exact(4).map(|unit| u32::from_le_bytes([unit[0], unit[1], unit[2], unit[3]])).collect();
    let ends: Vec<usize> = texts.match_indices('\0').map(|(end, _)| end).collect();
    Trie { units: &units, texts, ends: &ends }
        .growth()
        .ok_or_else(|| damaged("its trie leads out of itself or of its texts"))
}

/// A trie and the texts of its leaves.
struct Trie<'a> {
    units: &'a [u32],
    texts: &'a str,
    /// Where the texts end, in ascending order; the last one may lack an end.
    ends: &'a [usize],
}

impl Trie<'_> {
    /// Maximum number of bytes of a text per byte of the shortest key that leads to it; `None` if some key leads nowhere.
    fn growth(&self) -> Option<usize> {
        let (mut growth, mut seen) = (1, vec![false; self.units.len()]);
        let root = self.node(offset(*self.units.first()?))?;
        let mut nodes = VecDeque::from([(root, 0)]);
        while let Some((node, depth)) = nodes.pop_front() {
            for byte in 1..=u8::MAX {
                let place = node ^ usize::from(byte);
                let unit = self.units[place];
                if unit & LABEL != u32::from(byte) {
                    continue;
                }
                let child = self.node(place ^ offset(unit))?;
                if unit & HAS_LEAF != 0 {
                    growth = growth.max(self.text_bytes(self.units[child] & VALUE)?.div_ceil(depth + 1));
                }
                if !std::mem::replace(&mut seen[child], true) {
                    nodes.push_back((child, depth + 1));
                }
            }
        }
        Some(growth)
    }

    /// The place, if it and all that any next byte leads to are there.
    fn node(&self, place: usize) -> Option<usize> {
        ((place | 0xff) < self.units.len()).then_some(place)
    }

    /// The length of the text that begins here.
    fn text_bytes(&self, start: u32) -> Option<usize> {
        let start = start as usize;
        let next = self.ends.partition_point(|end| *end < start);
        let end = self.ends.get(next).copied().unwrap_or(self.texts.len());
        self.texts.get(start..end).map(str::len)
    }
}

/// The byte that leads to a unit; the highest bit marks values, which no byte leads to.
const LABEL: u32 = 1 << 31 | 0xff;
const HAS_LEAF: u32 = 1 << 8;
const VALUE: u32 = (1 << 31) - 1;

/// Offset that leads from a place to that of its children, by exclusive or.
fn offset(unit: u32) -> usize {
    let shift = if unit & (1 << 9) != 0 { 8 } else { 0 };
    ((unit >> 10) as usize) << shift
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tokenizers::normalizers::NormalizerWrapper;
    use tokenizers::{NormalizedString, Normalizer};

    /// A map that makes "bcd" of "a", with these units changed.
    fn map(units: usize, changes: &[(usize, u32)], texts: &[u8]) -> String {
        let mut trie = vec![0u32; units];
        // The root's children begin at 0x100, and what "a" leads to at 0x200.
        trie[0] = 0x100 << 10;
        trie[0x100 ^ 0x61] = 0x61 | HAS_LEAF | ((0x100 ^ 0x61 ^ 0x200) << 10);
        trie[0x200] = 1 << 31;
        changes.iter().for_each(|&(place, unit)| trie[place] = unit);
        let size = (units as u32 * 4).to_le_bytes();
        BASE64.encode([&size, &*trie.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>(), texts].concat())
    }

    #[test]
    fn the_growth_of_a_map_is_that_of_its_longest_text() {
        assert_eq!(growth(&map(0x300, &[], b"bcd\0longer\0")).unwrap(), 3);
        assert_eq!(growth(&map(0x300, &[(0x200, 1 << 31 | 4)], b"bcd\0longer\0")).unwrap(), 6);
        let step = json!({ "type": "Precompiled", "precompiled_charsmap": map(0x300, &[], b"bcd\0") });
        let nested = json!({ "type": "Sequence", "normalizers": [{ "type": "NFC" }, step] });
        assert!(check_in(&nested).is_ok());
        let long = json!({ "type": "Precompiled", "precompiled_charsmap": map(0x300, &[], b"abcdefghijkl\0") });
        let error = check_in(&json!({ "normalizers": [{ "type": "NFC" }, long] })).unwrap_err().to_string();
        assert!(error.contains("makes 12 bytes of one; the limit is 11"), "{error}");
        assert_eq!(growth(map(0x300, &[], b"bcd\0").trim_end_matches('=')).unwrap(), 3, "without padding");
        let mut text = NormalizedString::from("xay");
        let step: NormalizerWrapper = serde_json::from_value(step).unwrap();
        step.normalize(&mut text).unwrap();
        assert_eq!(text.get(), "xbcdy");
    }

    #[test]
    fn a_map_that_the_library_would_fail_on_is_refused() {
        let a = 0x100 ^ 0x61;
        let (whole, beyond) = (b"bcd\0".as_slice(), (1 << 8) << 10 | 1 << 9);
        for (map, fault) in [
            (String::new(), "ends before its trie"),
            (BASE64.encode([0xff; 8]), "ends within its trie"),
            (BASE64.encode([0; 4]), "leads out of itself"),
            (map(0x300, &[], b"\xff"), "not UTF-8"),
            (map(0x300, &[(0, beyond)], whole), "leads out of itself"),
            (map(0x300, &[(a, 0x61 | beyond)], whole), "leads out of itself"),
            (map(0x2ff, &[], whole), "leads out of itself"),
            (map(0x300, &[(0x200, 5)], whole), "or of its texts"),
            (map(0x300, &[(0x200, 1)], "\u{e9}\0".as_bytes()), "or of its texts"),
            ("?".to_owned(), "is damaged"),
        ] {
            let error = growth(&map).unwrap_err().to_string();
            assert!(error.contains(fault), "{fault}: {error}");
        }
    }

    #[test]
    fn a_trie_without_end_is_walked_once() {
        // "a" leads back to where it came from.
        let loops = map(0x300, &[(0x100 ^ 0x61, 0x61 | (0x61 << 10))], b"");
        assert_eq!(growth(&loops).unwrap(), 1);
    }
}
