//! Words as marked by each kind of tokenizer. WordPiece is compared with the goldens of masked models; the other
//! tokenizers are built here, with small vocabularies.

use super::*;
use serde_json::{Map, Value, json};
use std::path::Path;

fn golden(name: &str, file: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/goldens").join(name).join(file))
        .unwrap()
}

fn wordpiece() -> Tokenizer {
    Tokenizer::from_json(&golden("bert-mlm", "tokenizer.json")).unwrap()
}

/// The parts of the text that are whole words.
fn whole(tokenizer: &Tokenizer, text: &str) -> Vec<String> {
    let (words, encoded) = (tokenizer.words().unwrap(), tokenizer.encode(text).unwrap());
    let chars: Vec<char> = text.chars().collect();
    let text_at = |position: usize| {
        let (start, end) = encoded.offsets[position];
        chars[start..end].iter().collect::<String>().trim().to_owned()
    };
    words.whole(&encoded.ids, &encoded.offsets).into_iter().map(text_at).collect()
}

/// A BPE tokenizer with exactly these tokens, all characters of `alphabet`, and some special tokens; the rest of the
/// file is `parts`.
fn bpe(alphabet: impl Iterator<Item = char>, tokens: &[&str], unknown: Option<&str>, parts: Value) -> Tokenizer {
    let (mut vocab, mut merges) = (Map::new(), Vec::new());
    let special = ["<s>", "<mask>", "<unk>"];
    for token in special.into_iter().map(str::to_owned).chain(alphabet.map(String::from)) {
        vocab.insert(token, json!(vocab.len()));
    }
    for token in tokens {
        let ends: Vec<usize> = token.char_indices().map(|(start, c)| start + c.len_utf8()).collect();
        for pair in ends.windows(2) {
            let (left, right, both) = (&token[..pair[0]], &token[pair[0]..pair[1]], &token[..pair[1]]);
            if !vocab.contains_key(both) {
                merges.push(json!([left, right]));
                vocab.insert(both.to_owned(), json!(vocab.len()));
            }
        }
    }
    let added = |(id, content): (usize, &str)| {
        json!({ "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true })
    };
    let added: Vec<Value> = special.into_iter().enumerate().map(added).collect();
    let mut file = json!({
        "version": "1.0",
        "added_tokens": added,
        "model": { "type": "BPE", "vocab": vocab, "merges": merges, "unk_token": unknown, "fuse_unk": true },
    });
    file.as_object_mut().unwrap().extend(parts.as_object().unwrap().clone());
    Tokenizer::from_json(file.to_string().as_bytes()).unwrap()
}

fn byte_level(tokens: &[&str]) -> Tokenizer {
    let part =
        |trim: bool| json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": trim, "use_regex": true });
    let mut alphabet: Vec<char> = ByteLevel::alphabet().into_iter().collect();
    alphabet.sort_unstable();
    let parts = json!({ "pre_tokenizer": part(true), "post_processor": part(true), "decoder": part(true) });
    bpe(alphabet.into_iter(), tokens, None, parts)
}

/// Like the tokenizers of LLaMA and Gemma: the normalizer replaces spaces, and nothing splits the text before the
/// merges.
fn replacing(tokens: &[&str]) -> Tokenizer {
    let alphabet = (' '..='~').filter(|c| *c != ' ').chain(['▁', 'é']);
    let normalizer = json!({ "type": "Replace", "pattern": { "String": " " }, "content": "▁" });
    bpe(alphabet, tokens, Some("<unk>"), json!({ "normalizer": normalizer }))
}

fn metaspace(tokens: &[&str]) -> Tokenizer {
    let alphabet = (' '..='~').filter(|c| *c != ' ').chain(['▁', 'é']);
    let part = json!({ "type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true });
    bpe(alphabet, tokens, Some("<unk>"), json!({ "pre_tokenizer": part, "decoder": part }))
}

#[test]
fn wordpiece_has_the_goldens_words() {
    for name in ["bert-mlm", "modernbert-mlm"] {
        let tokenizer = Tokenizer::from_json(&golden(name, "tokenizer.json")).unwrap();
        let words = tokenizer.words().unwrap();
        let expected: Value = serde_json::from_slice(&golden(name, "expected.json")).unwrap();
        assert_eq!(expected["mask_id"], words.mask());
        for text in expected["texts"].as_array().unwrap() {
            let encoded = tokenizer.encode(text["text"].as_str().unwrap()).unwrap();
            assert_eq!(text["ids"], json!(encoded.ids));
            let positions: Vec<&Value> =
                text["masked"].as_array().unwrap().iter().map(|masked| &masked["position"]).collect();
            assert_eq!(json!(words.whole(&encoded.ids, &encoded.offsets)), json!(positions), "{}", text["text"]);
        }
    }
}

#[test]
fn wordpiece_allows_tokens_that_are_neither_pieces_nor_special() {
    let (tokenizer, words) = (wordpiece(), wordpiece().words().unwrap());
    let vocab = tokenizer.inner.get_vocab(true);
    assert_eq!(words.allowed().len(), vocab.len());
    for (token, id) in vocab {
        let expected = !token.starts_with("##") && !token.starts_with('[');
        assert_eq!(words.allowed()[id as usize], expected, "{token}");
        assert_eq!(words.text(id), token.trim_start_matches("##"));
    }
}

#[test]
fn wordpiece_words_in_many_scripts() {
    let tokenizer = wordpiece();
    // Every Chinese character is a word; accents and capitals have been normalized; a character without a token is an
    // unknown word.
    assert_eq!(whole(&tokenizer, "都本, thé THE zzz ☂ and"), ["都", "本", ",", "thé", "THE", "zzz", "☂", "and"]);
    assert_eq!(whole(&tokenizer, "The [MASK] of [SEP] and[UNK]"), ["The", "of", "and", "[UNK]"]);
    assert!(whole(&tokenizer, "").is_empty());
    assert!(whole(&tokenizer, " \n\t ").is_empty());
    assert!(whole(&tokenizer, "[CLS][MASK] [SEP]").is_empty());
}

/// A piece at the start of a text is still a piece.
#[test]
fn a_literal_piece_is_not_a_word() {
    let mut file: Value = serde_json::from_slice(&golden("bert-mlm", "tokenizer.json")).unwrap();
    file["pre_tokenizer"] = json!({ "type": "WhitespaceSplit" });
    let tokenizer = Tokenizer::from_json(file.to_string().as_bytes()).unwrap();
    assert_eq!(whole(&tokenizer, "##ing of the"), ["of", "the"]);
}

#[test]
fn byte_level_words_begin_with_a_space_or_the_text() {
    let tokenizer =
        byte_level(&["The", "Ġfox", "es", "fox", "Ġdon", "'t", "ĠcafÃ©", "Ġ42", "æĹ¥", "Ġ(", "...", "ĠThe"]);
    let words = whole(&tokenizer, "The fox foxes (fox) don't café... 42 421 fox\nfox  fox");
    assert_eq!(words, ["The", "fox", "(", "fox", ")", "don", "'t", "café", "...", "42", "fox", "fox", "fox"]);
    // Words of several tokens, letters that meet without a space, parts of characters, and white space are not whole
    // words.
    assert!(whole(&tokenizer, "foxfox zebra ☂ \n\n").is_empty());
    assert_eq!(whole(&tokenizer, "fox日 日"), ["日"], "its space is a token of its own");
    assert_eq!(whole(&tokenizer, "日<s>日<mask> fox"), ["日", "日", "fox"]);
}

#[test]
fn byte_level_allows_tokens_that_begin_a_word() {
    let tokenizer = byte_level(&["fox", "Ġfox", "ĠcafÃ©", "Ġæ", "...", "ĠĠ"]);
    let words = tokenizer.words().unwrap();
    let allowed = |token: &str| words.allowed()[tokenizer.inner.token_to_id(token).unwrap() as usize];
    for token in ["Ġfox", "ĠcafÃ©", "...", ",", "Ġf"] {
        assert!(allowed(token), "{token}");
    }
    // Continuations, parts of characters, white space, special tokens.
    for token in ["fox", "f", "Ġæ", "æ", "Ġ", "ĠĠ", "Ċ", "<s>", "<mask>", "<unk>"] {
        assert!(!allowed(token), "{token}");
    }
    let text = |token: &str| words.text(tokenizer.inner.token_to_id(token).unwrap());
    assert_eq!((text("Ġfox"), text("fox"), text("ĠcafÃ©")), ("fox".into(), "fox".into(), "café".into()));
}

#[test]
fn sentencepiece_words_begin_with_its_space() {
    let tokens = ["▁The", "▁fox", "es", "fox", "▁don", "▁café", "▁42", "The"];
    let text = "The fox foxes (fox) don't café 42 421 日 fox, fox日 fox";
    // `foxes`, `421` and the last letter of `fox日` continue the previous token.
    let expected = ["The", "fox", "(", "fox", ")", "don", "'", "t", "café", "42", "日", "fox", ",", "fox"];
    assert_eq!(whole(&metaspace(&tokens), text), expected);
    assert_eq!(whole(&replacing(&tokens), text), expected);
    let words = metaspace(&tokens).words().unwrap();
    let tokenizer = metaspace(&tokens);
    let allowed = |token: &str| words.allowed()[tokenizer.inner.token_to_id(token).unwrap() as usize];
    for (token, is_allowed) in [("▁fox", true), (",", true), ("fox", false), ("▁", false), ("<unk>", false)] {
        assert_eq!(allowed(token), is_allowed, "{token}");
    }
    assert_eq!(words.text(tokenizer.inner.token_to_id("▁café").unwrap()), "café");
}

#[test]
fn byte_fallback_tokens_are_not_words() {
    let mut bytes: Vec<String> = (0..256).map(|byte| format!("<0x{byte:02X}>")).collect();
    bytes.push("▁a".into());
    let tokens: Map<String, Value> = ["<mask>", "<unk>", "▁", "a"]
        .into_iter()
        .map(str::to_owned)
        .chain(bytes)
        .enumerate()
        .map(|(id, token)| (token, json!(id)))
        .collect();
    let file = json!({
        "version": "1.0",
        "added_tokens": [],
        "normalizer": { "type": "Replace", "pattern": { "String": " " }, "content": "▁" },
        "model": { "type": "BPE", "vocab": tokens, "merges": [["▁", "a"]], "unk_token": "<unk>", "byte_fallback": true },
    });
    let tokenizer = Tokenizer::from_json(file.to_string().as_bytes()).unwrap();
    assert_eq!(whole(&tokenizer, "a a日 日 a"), ["a", "a"]);
    let words = tokenizer.words().unwrap();
    assert!(!words.allowed()[tokenizer.inner.token_to_id("<0x41>").unwrap() as usize]);
    assert!(!words.allowed()[words.mask() as usize], "whether or not the file calls it special");
}

#[test]
fn tokens_beyond_the_vocabulary_are_not_words() {
    let words = wordpiece().words().unwrap();
    assert_eq!(words.whole(&[107, 4000, 107], &[(0, 3), (4, 5), (6, 9)]), [0, 2]);
    assert_eq!(words.text(4000), "");
    // Tokens without a range in the text, or with overlapping ranges.
    assert!(words.whole(&[107, 107, 107], &[(0, 0), (1, 3), (2, 4)]).is_empty());
    assert!(words.whole(&[], &[]).is_empty());
}

#[test]
fn tokenizers_that_do_not_mark_words_are_refused() {
    let refused = |file: &Value| {
        let tokenizer = Tokenizer::from_json(file.to_string().as_bytes()).unwrap();
        tokenizer.words().err().unwrap().to_string()
    };
    let causal = Tokenizer::from_json(&golden("gpt2", "tokenizer.json")).unwrap();
    let error = causal.words().err().unwrap().to_string();
    assert_eq!(error, "tokenizer: there is no mask token; expected one of [\"[MASK]\", \"<mask>\"]");
    let words = json!({
        "version": "1.0", "added_tokens": [], "pre_tokenizer": { "type": "WhitespaceSplit" },
        "model": { "type": "BPE", "vocab": { "<mask>": 0, "a": 1 }, "merges": [] },
    });
    assert!(refused(&words).contains("does not mark the start of words in a known way"));
}
