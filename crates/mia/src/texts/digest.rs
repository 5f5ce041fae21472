//! Short names of texts, and the form in which two texts are equal for statistics: after NFKC, in lower case, and with every
//! run of white space made one space (`methods.md`, "cluster").

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;

const BYTES: usize = 16;

/// The first half of a text's SHA-256, which serializes as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextDigest([u8; BYTES]);

impl TextDigest {
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self::first_half(Sha256::new_with_prefix(text))
    }

    /// The digest of a sequence of texts, which no other sequence has.
    #[must_use]
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self::first_half(hash)
    }

    fn first_half(hash: Sha256) -> Self {
        let mut digest = Self::default();
        digest.0.copy_from_slice(&hash.finalize()[..BYTES]);
        digest
    }

    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A finished SHA-256 as reports and addresses spell it: `sha256:` and 64 hexadecimal digits.
pub fn sha256_address(hash: Sha256) -> String {
    format!("sha256:{}", hexadecimal(&hash.finalize()))
}

/// Two hexadecimal digits for each byte.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Serialize for TextDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:032x}", u128::from_be_bytes(self.0)))
    }
}

impl<'de> Deserialize<'de> for TextDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let number = u128::from_str_radix(&text, 16).map_err(Error::custom)?;
        Ok(Self(number.to_be_bytes()))
    }
}

/// The digest that all texts of a cluster share which differ in nothing but case, width and white space.
#[must_use]
pub fn cluster_digest(text: &str) -> TextDigest {
    TextDigest::new(&normalized(text))
}

/// The text after NFKC, in lower case, its words separated by one space each.
pub(super) fn normalized(text: &str) -> String {
    // NFKC changes no ASCII text.
    let folded =
        if text.is_ascii() { text.to_ascii_lowercase() } else { text.nfkc().collect::<String>().to_lowercase() };
    let mut normalized = String::with_capacity(folded.len());
    for word in folded.split_whitespace() {
        if !normalized.is_empty() {
            normalized.push(' ');
        }
        normalized.push_str(word);
    }
    normalized
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn digests_are_written_and_read() {
        for text in ["", "a", "\u{0}"] {
            let digest = TextDigest::new(text);
            let json = serde_json::to_string(&digest).unwrap();
            assert_eq!(json.len(), 34);
            assert_eq!(serde_json::from_str::<TextDigest>(&json).unwrap(), digest);
        }
        assert!(serde_json::from_str::<TextDigest>("\"x\"").is_err());
    }

    /// FIPS 180-2's example.
    #[test]
    fn a_digest_is_the_first_half_of_sha256() {
        assert_eq!(TextDigest::new("abc"), serde_json::from_str("\"ba7816bf8f01cfea414140de5dae2223\"").unwrap());
    }

    #[test]
    fn where_one_part_ends_matters() {
        let digests = [TextDigest::of_parts(["ab", "c"]), TextDigest::of_parts(["a", "bc"]), TextDigest::new("abc")];
        assert!(digests[0] != digests[1] && digests[1] != digests[2] && digests[0] != digests[2]);
    }

    #[test]
    fn case_width_and_white_space_make_no_difference() {
        let one = cluster_digest("The caf\u{e9}  on\nthe hill");
        for same in
            ["the cafe\u{301} on the hill", " THE CAF\u{c9} on the\u{a0}hill ", "\u{ff34}he caf\u{e9} on the hill"]
        {
            assert_eq!(cluster_digest(same), one, "{same}");
        }
        assert_ne!(cluster_digest("the cafe on the hill"), one);
    }

    proptest! {
        #[test]
        fn the_short_way_for_ascii_is_the_long_way(text in "[ -~\t\n\u{b}\u{c}\r\u{1c}-\u{1f}]{0,40}") {
            let folded = text.nfkc().collect::<String>().to_lowercase();
            prop_assert_eq!(normalized(&text), folded.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
}
