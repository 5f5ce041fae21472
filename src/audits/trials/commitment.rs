//! A commitment to the private part of a test, made before the model was.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

/// Hexadecimal digits of a SHA-256.
const DIGITS: usize = 64;

/// Whether the private texts are those that the client committed to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Commitment {
    /// What the client gave.
    pub given: String,
    /// The SHA-256 of the private texts of the request.
    pub computed: String,
    pub matches: bool,
}

impl Commitment {
    /// Compares what is given with the SHA-256 over the private texts in order, each preceded by the number of its bytes as 64
    /// bits (little-endian).
    pub fn new<'a>(given: String, private: impl IntoIterator<Item = &'a str>) -> Self {
        let mut hash = Sha256::new();
        for text in private {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        let computed: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { matches: given == computed, given, computed }
    }
}

/// Why a text is no commitment.
#[must_use]
pub fn commitment_fault(given: &str) -> Option<String> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_valid = given.len() == DIGITS && given.bytes().all(is_digit);
    (!is_valid).then(|| format!("a commitment is a SHA-256 as {DIGITS} hexadecimal digits in lower case"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: `hashlib.sha256(b"".join(struct.pack("<Q", len(t)) + t for t in (b"one", "zw\u00f6lf".encode()))).hexdigest()`.
    #[test]
    fn a_commitment_covers_the_texts_their_order_and_their_bounds() {
        let of_texts = |texts: &[&str]| Commitment::new(String::new(), texts.iter().copied()).computed;
        assert_eq!(
            of_texts(&["one", "zw\u{f6}lf"]),
            "5151a3d44024a583957e705f16825dc4ee9a43456b62796b89cec5b735eb40bf"
        );
        assert_eq!(of_texts(&[]), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        let all = [of_texts(&["a", "b"]), of_texts(&["b", "a"]), of_texts(&["ab"]), of_texts(&["ab", ""])];
        for (place, one) in all.iter().enumerate() {
            assert!(!all[..place].contains(one), "{all:?}");
        }
        assert!(Commitment::new(of_texts(&["a"]), ["a"]).matches);
        assert!(!Commitment::new(of_texts(&["a"]), ["b"]).matches);
    }

    #[test]
    fn what_is_no_sha256_is_refused() {
        assert_eq!(commitment_fault(&"0123456789abcdef".repeat(4)), None);
        let sha256 = "0".repeat(64);
        for bad in
            ["", &sha256[1..], &format!("{sha256}0"), &"A".repeat(64), &format!("sha256:{sha256}"), &"g".repeat(64)]
        {
            assert!(commitment_fault(bad).is_some_and(|fault| fault.contains("64 hexadecimal digits")), "{bad}");
        }
    }
}
