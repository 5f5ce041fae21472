//! A commitment to a test, made before the model was.

use super::layout::{TestKind, TestLayout};
use super::texts::TestTexts;
use crate::audits::request::AuditRequest;
use mia::texts::hexadecimal;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

/// Hexadecimal digits of a SHA-256.
const DIGITS: usize = 64;

/// Comparison of the test with the client's commitment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Commitment {
    /// Commitment of the client.
    pub given: String,
    /// The SHA-256 of the test of the request.
    pub computed: String,
    pub matches: bool,
}

impl Commitment {
    /// Compares what is given with the SHA-256 over these strings, each preceded by the number of its bytes (UTF-8) as 64 bits
    /// (little-endian): the kind of the test, the method ([`committed_method`]), the nonce, and of each unit the
    /// number of its texts as decimal digits and the texts, so that the draw, the method and the private texts are fixed alike.
    /// A unit is a document with its public text first, a canary before its twins, a shard's items as published, or all held-out
    /// texts. An absent nonce is the empty string.
    pub fn new(given: String, kind: TestKind, method: &str, nonce: &str, texts: &TestTexts) -> Self {
        let computed = commitment(kind, method, nonce, &texts.committed());
        Self { matches: given == computed, given, computed }
    }
}

/// The SHA-256 that commits to a test, in hexadecimal digits, as [`Commitment::new`] describes it.
pub fn commitment(kind: TestKind, method: &str, nonce: &str, units: &[Vec<&str>]) -> String {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    [&kind.to_string(), method, nonce].into_iter().for_each(&mut add);
    for texts in units {
        add(&texts.len().to_string());
        texts.iter().copied().for_each(&mut add);
    }
    hexadecimal(&hash.finalize())
}

/// The method that a commitment fixes: the label that the primary one has by default; of `di` the seed and the labels of all methods, joined
/// by line feeds. `None` if no method is primary.
pub fn committed_method(scoring: &AuditRequest, layout: &TestLayout) -> Option<String> {
    let TestLayout::Di { seed, .. } = layout else { return Some(scoring.primary()?.label()) };
    let labels = scoring.methods.iter().map(|method| method.method.label());
    Some(std::iter::once(seed.to_string()).chain(labels).collect::<Vec<_>>().join("\n"))
}

/// Why a text is no commitment.
pub fn commitment_fault(given: &str) -> Option<String> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_valid = given.len() == DIGITS && given.bytes().all(is_digit);
    (!is_valid).then(|| format!("a commitment is a SHA-256 as {DIGITS} hexadecimal digits in lower case"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: `hashlib.sha256` over `struct.pack("<Q", len(s)) + s` of each string in UTF-8.
    #[test]
    fn a_commitment_covers_kind_method_nonce_draw_and_bounds() {
        let committed = |method: &str, nonce: &str, units: &[&[&str]]| {
            commitment(TestKind::Paired, method, nonce, &units.iter().map(|texts| texts.to_vec()).collect::<Vec<_>>())
        };
        let units: [&[&str]; 2] = [&["one", "zw\u{f6}lf"], &["three", "four", "five"]];
        let expected = "1a39b337c7f1cb2af3579a3d6d222b356cf5d1cfb5cd706bfbe35d338cea0c87";
        assert_eq!(committed("loss", "n\u{f6}", &units), expected);
        let others = [
            committed("zlib", "n\u{f6}", &units),
            committed("loss", "n", &units),
            committed("loss", "n\u{f6}", &[&["zw\u{f6}lf", "one"], units[1]]),
            committed("loss", "n\u{f6}", &[&["one", "zw\u{f6}lf", "three"], &["four", "five"]]),
            committed("loss", "n\u{f6}", &[units[1], units[0]]),
            commitment(TestKind::Rank, "loss", "n\u{f6}", &[units[0].to_vec(), units[1].to_vec()]),
        ];
        assert!(others.iter().all(|other| other != expected), "{others:?}");
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
