//! Feeds `tokenizer.json`. Where it can be read, a few short texts are encoded with it.
//!
//! No panic but those of the library that are caught, memory bounded whatever the file announces, and offsets and special tokens that fit the ids.

#![no_main]

use libfuzzer_sys::fuzz_target;
use lm::tokenizer::{Tokenizer, TokenizerError};
use pdr_audit_fuzz::{allow_panics_of, bound_memory};

const TEXTS: [&str; 6] =
    ["", " ", "It was the best of times.", "l'\u{e9}t\u{e9} \u{fdfa}", "\u{8a9e}\u{1f600}\r\n\t0", "[MASK] <s>"];

/// Words take memory for every id; models whose outputs are fewer than the ids are refused before.
const MOST_IDS: usize = 1 << 16;

const CAUGHT: [&str; 2] = ["tokenizers", "spm_precompiled"];

fuzz_target!(init: { bound_memory(); allow_panics_of(&CAUGHT) }, |data: &[u8]| {
    if let Err(error) = use_tokenizer(data) {
        assert_ne!(error.to_string(), "tokenizer: ");
    }
});

fn use_tokenizer(json: &[u8]) -> Result<(), TokenizerError> {
    let tokenizer = Tokenizer::from_json(json)?;
    let bound = tokenizer.id_bound();
    tokenizer.fingerprint()?;
    let words = if bound <= MOST_IDS { tokenizer.words().ok() } else { None };
    for text in TEXTS {
        // A text that cannot be encoded hides none of the others.
        let Ok(encoded) = tokenizer.encode(text) else { continue };
        let of_text = encoded.text();
        assert!(of_text.start <= of_text.end && of_text.end <= encoded.ids.len(), "{encoded:?}");
        assert_eq!(encoded.offsets.len(), encoded.ids.len());
        if let Some(words) = &words {
            let whole = words.whole(&encoded.ids, &encoded.offsets);
            assert!(whole.iter().all(|&position| position < encoded.ids.len()), "{whole:?}");
        }
        for id in tokenizer.plain_ids(text)? {
            tokenizer.piece(id);
        }
    }
    Ok(())
}
