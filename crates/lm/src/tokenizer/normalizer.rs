//! What a normalizer may make of a text.
//!
//! A `tokenizer.json` may replace a character by many, and do so several times, so that a short text would take all memory. How much a
//! step can make of a byte is known beforehand, and a text is normalized step by step, without its tokens, where all steps
//! together could make too much of it.

use super::charsmap::growth_in;
use super::error::TokenizerError;
use super::guarded::guarded;
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::{NormalizedString, Normalizer};

/// The most bytes that a normalizer may make of a text. The library takes some 20 times as much memory.
const MOST_BYTES: usize = 32 << 20;

/// The steps of a normalizer; cheap to ask about texts that no step makes much longer.
#[derive(Clone)]
pub struct NormalizerBound {
    steps: Vec<NormalizerStep>,
}

#[derive(Clone)]
struct NormalizerStep {
    normalizer: NormalizerWrapper,
    /// How many bytes it makes of one at most.
    times: usize,
    /// How many it adds.
    added: usize,
}

impl NormalizerBound {
    /// The steps of a normalizer; none where there is none.
    ///
    /// # Errors
    /// Where a map of characters is damaged.
    pub fn new(normalizer: Option<&NormalizerWrapper>) -> Result<Self, TokenizerError> {
        let mut steps = Vec::new();
        normalizer.map_or(Ok(()), |normalizer| flatten(normalizer, &mut steps))?;
        Ok(Self { steps })
    }

    /// Refuses a text of which the normalizer would make too much.
    ///
    /// # Errors
    /// The bytes that there are, and how many there may be.
    pub fn check(&self, text: &str) -> Result<(), TokenizerError> {
        let most = self.steps.iter().fold(text.len(), |bytes, step| step.most_bytes(bytes));
        if most <= MOST_BYTES {
            return Ok(());
        }
        let mut normalized = NormalizedString::from(text);
        for step in &self.steps {
            let most = step.most_bytes(normalized.get().len());
            if most > MOST_BYTES {
                let bytes = text.len();
                return Err(TokenizerError(format!(
                    "its normalizer may make {most} bytes of a text of {bytes} bytes; the limit is {MOST_BYTES}"
                )));
            }
            let done = guarded(|| step.normalizer.normalize(&mut normalized))?;
            done.map_err(|error| TokenizerError(error.to_string()))?;
        }
        Ok(())
    }
}

fn flatten(normalizer: &NormalizerWrapper, steps: &mut Vec<NormalizerStep>) -> Result<(), TokenizerError> {
    match normalizer {
        NormalizerWrapper::Sequence(sequence) => sequence.as_ref().iter().try_for_each(|step| flatten(step, steps)),
        step => {
            steps.push(NormalizerStep::new(step.clone())?);
            Ok(())
        }
    }
}

impl NormalizerStep {
    fn new(normalizer: NormalizerWrapper) -> Result<Self, TokenizerError> {
        use NormalizerWrapper as Kind;
        let times = match &normalizer {
            // The longest decomposition of Unicode is that of U+FDFA: 33 bytes of 3, in compatibility forms.
            Kind::NFKC(_) | Kind::NFKD(_) => 11,
            Kind::Precompiled(map) => {
                growth_in(&serde_json::to_value(map).map_err(|error| TokenizerError(error.to_string()))?)?
            }
            // Canonical decompositions, and letters whose lower case is longer, are at most three times as long. BERT does both,
            // and puts spaces around ideographs.
            Kind::NFC(_) | Kind::NFD(_) | Kind::Lowercase(_) => 3,
            Kind::BertNormalizer(_) => 9,
            // A byte becomes a character of at most two.
            Kind::ByteLevel(_) => 2,
            // A pattern may match nothing before each character.
            Kind::Replace(replace) => 1 + replace.content.len(),
            Kind::StripNormalizer(_) | Kind::StripAccents(_) | Kind::Nmt(_) | Kind::Prepend(_) | Kind::Sequence(_) => 1,
        };
        let added = if let Kind::Prepend(prepend) = &normalizer { prepend.prepend.len() } else { 0 };
        Ok(Self { normalizer, times, added })
    }

    /// The most bytes that it makes of so many.
    fn most_bytes(&self, bytes: usize) -> usize {
        bytes.saturating_mul(self.times).saturating_add(self.added)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn bound(normalizer: Value) -> NormalizerBound {
        NormalizerBound::new(Some(&serde_json::from_value(normalizer).unwrap())).unwrap()
    }

    fn tenfold(times: usize) -> Value {
        let step = json!({ "type": "Replace", "pattern": { "String": "e" }, "content": "eeeeeeeeee" });
        json!({ "type": "Sequence", "normalizers": vec![step; times] })
    }

    #[test]
    fn a_text_that_would_take_all_memory_is_refused() {
        let hostile = bound(tenfold(30));
        let error = hostile.check(&"e".repeat(300)).unwrap_err().to_string();
        assert!(error.contains("of a text of 300 bytes; the limit is 33554432"), "{error}");
        // A text without the character stays as it is.
        assert!(hostile.check(&"a".repeat(300)).is_ok());
        let nested = bound(json!({ "type": "Sequence", "normalizers": [tenfold(15), tenfold(15)] }));
        assert!(nested.check("e").is_err() && nested.check("a").is_ok());
        assert!(bound(json!({ "type": "Prepend", "prepend": "e".repeat(40_000_000) })).check("a").is_err());
    }

    #[test]
    fn what_normalizers_do_in_earnest_is_allowed() {
        let long = "An ordinary text of a mebibyte. ".repeat(1 << 15);
        assert_eq!(long.len(), 1 << 20);
        for normalizer in [
            json!({ "type": "NFKC" }),
            json!({ "type": "Sequence", "normalizers": [
                { "type": "Prepend", "prepend": "\u{2581}" },
                { "type": "Replace", "pattern": { "String": " " }, "content": "\u{2581}" }
            ] }),
            json!({ "type": "Sequence", "normalizers": [
                { "type": "Replace", "pattern": { "String": "``" }, "content": "\"" },
                { "type": "NFKD" }, { "type": "StripAccents" }, { "type": "Lowercase" },
                { "type": "Replace", "pattern": { "Regex": " {2,}" }, "content": " " }
            ] }),
            json!({ "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true }),
        ] {
            assert!(bound(normalizer.clone()).check(&long).is_ok(), "{normalizer}");
        }
        assert!(NormalizerBound::new(None).unwrap().check(&long).is_ok());
    }

    /// No step makes more of a character than is assumed.
    #[test]
    fn steps_make_no_more_than_assumed() {
        for normalizer in ["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "ByteLevel"] {
            let step = NormalizerStep::new(serde_json::from_value(json!({ "type": normalizer })).unwrap()).unwrap();
            for character in (0..=0x10_ffff).filter_map(char::from_u32) {
                let mut normalized = NormalizedString::from(character.to_string());
                step.normalizer.normalize(&mut normalized).unwrap();
                let (bytes, most) = (normalized.get().len(), step.most_bytes(character.len_utf8()));
                assert!(bytes <= most, "{normalizer} makes {bytes} bytes of {character:?}");
            }
        }
    }
}
