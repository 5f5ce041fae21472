//! Byte-level tokenizers without `tokenizer.json`, compared with transformers' reading of the same files.

use super::{Tokenizer, TokenizerError, TokenizerFiles, from_files, from_vocab_and_merges};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::path::Path;
use std::sync::LazyLock;

fn fixture(path: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(path)).unwrap()
}

fn golden(name: &str) -> Vec<u8> {
    fixture(&format!("goldens/opt-pre/{name}"))
}

fn golden_directory(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/goldens").join(name)
}

/// The golden's vocabulary and merges with other additional files.
fn build(config: Option<&Value>, map: Option<&Value>, added: Option<&Value>) -> Result<Tokenizer, TokenizerError> {
    let bytes = |value: Option<&Value>| value.map(|value| value.to_string().into_bytes());
    let (config, map, added) = (bytes(config), bytes(map), bytes(added));
    from_vocab_and_merges(TokenizerFiles {
        vocab: &golden("vocab.json"),
        merges: &golden("merges.txt"),
        config: config.as_deref(),
        special_tokens_map: map.as_deref(),
        added_tokens: added.as_deref(),
    })
}

fn from_golden(vocab: &[u8], merges: &[u8]) -> Result<Tokenizer, TokenizerError> {
    let config = golden("tokenizer_config.json");
    from_vocab_and_merges(TokenizerFiles {
        vocab,
        merges,
        config: Some(&config),
        special_tokens_map: None,
        added_tokens: None,
    })
}

/// The error for a configuration.
fn refusal(config: Value) -> String {
    build(Some(&config), None, None).err().unwrap().to_string()
}

#[test]
fn the_golden_has_its_ids() {
    let tokenizer = from_golden(&golden("vocab.json"), &golden("merges.txt")).unwrap();
    let saved = Tokenizer::from_json(&golden("tokenizer.json")).unwrap();
    let expected: Value = serde_json::from_slice(&golden("expected.json")).unwrap();
    let texts = expected["texts"].as_array().unwrap();
    assert!(texts.len() >= 18);
    for text in texts {
        let encoded = tokenizer.encode(text["text"].as_str().unwrap()).unwrap();
        assert_eq!(json!(encoded.ids), text["ids"], "{}", text["name"]);
        assert_eq!(encoded, saved.encode(text["text"].as_str().unwrap()).unwrap(), "{}", text["name"]);
        assert!(encoded.bos_prepended());
    }
    assert_eq!(tokenizer.id_bound(), saved.id_bound());
}

#[test]
fn ids_are_those_of_transformers() {
    let fixture: Value = serde_json::from_slice(&fixture("tokenizers/byte_level.json")).unwrap();
    let texts = fixture["texts"].as_array().unwrap();
    for case in fixture["cases"].as_array().unwrap() {
        let tokenizer = build(case.get("config"), case.get("special_tokens_map"), case.get("added_tokens")).unwrap();
        for (text, ids) in texts.iter().zip(case["ids"].as_array().unwrap()) {
            let encoded = tokenizer.encode(text.as_str().unwrap()).unwrap();
            assert_eq!(json!(encoded.ids), *ids, "{}: {text}", case["name"]);
        }
    }
}

static BUILT: LazyLock<Tokenizer> =
    LazyLock::new(|| from_golden(&golden("vocab.json"), &golden("merges.txt")).unwrap());
static SAVED: LazyLock<Tokenizer> = LazyLock::new(|| Tokenizer::from_json(&golden("tokenizer.json")).unwrap());

/// Texts from all of Unicode, words with their spaces, and special tokens. `<s>` and `<unk>` are excluded: in the
/// golden's `tokenizer.json` they are special too, which none of its other files states.
fn texts() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        "\\PC{0,8}",
        "[a-z]{1,6}",
        "[ \t\r\n\u{a0}\u{3000}]{1,4}",
        any::<char>().prop_map(String::from),
        proptest::sample::select(&["</s>", "<pad>", " the", "'ll", " 42", "</", "s>", "e\u{301}"][..])
            .prop_map(String::from),
    ];
    proptest::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_saved_tokenizer_gives_the_same(text in texts()) {
        prop_assume!(!text.contains("<s>") && !text.contains("<unk>"));
        prop_assert_eq!(BUILT.encode(&text).unwrap(), SAVED.encode(&text).unwrap());
    }
}

#[test]
fn settings_that_change_ids_are_refused_by_name() {
    assert!(
        refusal(json!({ "tokenizer_class": "Qwen2Tokenizer" })).contains("key `tokenizer_class`: \"Qwen2Tokenizer\"")
    );
    for key in ["split_special_tokens", "add_eos_token", "do_lower_case"] {
        assert!(refusal(json!({ key: true })).contains(&format!("key `{key}`: not supported")));
        assert!(build(Some(&json!({ key: false })), None, None).is_ok());
    }
    assert!(refusal(json!({ "add_bos_token": 1 })).contains("expected true or false, found 1"));
    assert!(refusal(json!({ "add_bos_token": true, "bos_token": null })).contains("no `bos_token`"));
    assert!(refusal(json!({ "bos_token": 2 })).contains("key `bos_token`"));
    assert!(refusal(json!({ "bos_token": { "text": "<s>" } })).contains("missing field `content`"));
    assert!(refusal(json!({ "additional_special_tokens": "<s>" })).contains("expected a list"));
    assert!(refusal(json!({ "added_tokens_decoder": { "x": { "content": "<s>" } } })).contains("\"x\""));
}

#[test]
fn contradicting_ids_are_refused() {
    let decoder =
        |id: u32, content: &str| json!({ "added_tokens_decoder": { id.to_string(): { "content": content } } });
    assert!(build(Some(&decoder(2, "</s>")), None, None).is_ok());
    assert!(refusal(decoder(3, "</s>")).contains("added token \"</s>\" has id 3, but the vocabulary gives it 2"));
    assert!(
        refusal(decoder(500, "<new>")).contains("added token \"<new>\" has id 500, but the vocabulary gives it 410")
    );
    let added = json!({ "<a>": 410, "<b>": 410 });
    assert!(build(None, None, Some(&added)).err().unwrap().to_string().contains("both have id 410"));
}

/// The error for a change of `vocab.json`, with a token to be added.
fn vocab_refusal(change: impl Fn(&mut serde_json::Map<String, Value>)) -> Option<String> {
    let mut vocab: Value = serde_json::from_slice(&golden("vocab.json")).unwrap();
    change(vocab.as_object_mut().unwrap());
    let config = json!({ "bos_token": "<new>" }).to_string();
    let built = from_vocab_and_merges(TokenizerFiles {
        vocab: vocab.to_string().as_bytes(),
        merges: b"#version: 0.2\n",
        config: Some(config.as_bytes()),
        special_tokens_map: None,
        added_tokens: None,
    });
    built.err().map(|e| e.to_string())
}

#[test]
fn ids_of_the_vocabulary_are_unique() {
    assert_eq!(vocab_refusal(|_| ()), None);
    let twice = vocab_refusal(|vocab| drop(vocab.insert("<pad>".into(), json!(0)))).unwrap();
    assert_eq!(twice, "tokenizer: vocab.json: tokens \"<pad>\" and \"<s>\" both have id 0");
    let gap = vocab_refusal(|vocab| drop(vocab.remove("Ġthe"))).unwrap();
    assert!(gap.contains("ids have gaps, so there is no free id for the added token \"<new>\""), "{gap}");
    assert!(vocab_refusal(|vocab| drop(vocab.insert("a".into(), json!(-1)))).unwrap().contains("vocab.json: "));
    assert!(vocab_refusal(|vocab| drop(vocab.remove("a"))).unwrap().contains("no token 'a'"));
}

#[test]
fn merges_are_refused_by_line() {
    let refused = |merges: &str| from_golden(&golden("vocab.json"), merges.as_bytes()).err().map(|e| e.to_string());
    assert_eq!(refused("#version: 0.2\nh e\n"), None);
    assert_eq!(refused("#version: 0.2\r\nh e\r\n"), None);
    let expect = |merges: &str, reason: &str| {
        assert_eq!(refused(merges).unwrap(), format!("tokenizer: merges.txt, line {reason}"))
    };
    expect("h e\n", "1: does not begin with `#version`");
    expect("#version: 0.2\nh e\nx \n", "3: \"x \" is not two tokens");
    expect("#version: 0.2\n\n", "2: \"\" is not two tokens");
    expect("#version: 0.2\nh e r\n", "2: \"h e r\" is not two tokens");
    expect("#version: 0.2\nh €\n", "2: \"€\" is not in vocab.json");
    // Both tokens exist, but their concatenation does not; it is also longer than every token.
    expect("#version: 0.2\nh e\nĠthe Ġthe\n", "3: \"ĠtheĠthe\" is not in vocab.json");
    assert!(from_golden(&golden("vocab.json"), b"#version\n\xff").err().unwrap().to_string().contains("utf-8"));
}

#[test]
fn no_cut_file_breaks_the_reader() {
    let (vocab, merges) = (golden("vocab.json"), golden("merges.txt"));
    for length in (0..vocab.len()).step_by(7) {
        assert!(from_golden(&vocab[..length], &merges).is_err());
    }
    for length in 0..merges.len() {
        let _ = from_golden(&vocab, &merges[..length]);
    }
}

/// The result for the given files, all from the golden, and the names that were requested.
fn choose(names: &[&str]) -> (Result<Vec<&'static str>, String>, Vec<&'static str>) {
    let requested = RefCell::new(Vec::new());
    let tokenizer = from_files(|name| {
        requested.borrow_mut().push(name);
        Ok::<_, TokenizerError>(
            names.contains(&name).then(|| if name.ends_with(".model") { Vec::new() } else { golden(name) }),
        )
    });
    (
        tokenizer.map(|(_, files)| files.into_iter().map(|(name, _)| name).collect()).map_err(|e| e.to_string()),
        requested.into_inner(),
    )
}

#[test]
fn the_files_are_chosen_in_order() {
    let all = ["tokenizer.model", "merges.txt", "vocab.json", "tokenizer.json", "tokenizer_config.json"];
    assert_eq!(choose(&all), (Ok(vec!["tokenizer.json"]), vec!["tokenizer.json"]));
    let without = all.map(|name| if name == "tokenizer.json" { "" } else { name });
    assert_eq!(choose(&without).0, Ok(vec!["vocab.json", "merges.txt", "tokenizer_config.json"]));
    assert_eq!(choose(&["vocab.json", "merges.txt"]).0, Ok(vec!["vocab.json", "merges.txt"]));
    assert!(choose(&["vocab.json"]).0.unwrap_err().contains("merges.txt and tokenizer.json are missing"));
    assert!(choose(&["merges.txt"]).0.unwrap_err().contains("vocab.json and tokenizer.json are missing"));
    for name in ["tokenizer.model", "spiece.model"] {
        let error = choose(&[name]).0.unwrap_err();
        assert!(error.contains(name) && error.contains("save_pretrained(DIRECTORY)"), "{error}");
    }
    assert_eq!(
        choose(&[]).0.unwrap_err(),
        "tokenizer: tokenizer.json is missing, and so are vocab.json and merges.txt"
    );
}

#[test]
fn a_failure_to_read_is_passed_on() {
    let error = from_files(|_| Err::<Option<Vec<u8>>, anyhow::Error>(anyhow::anyhow!("no permission"))).err().unwrap();
    assert_eq!(error.to_string(), "no permission");
}

/// Found by fuzzing: the library panics on the byte that is no UTF-8.
#[test]
fn a_file_that_the_library_panics_on_is_refused() {
    let json = String::from_utf8(fixture("goldens/gpt2/tokenizer.json")).unwrap();
    assert!(json.contains("\"decoder\""), "the fixture has a decoder");
    let damaged = json.replacen("\"decoder\"", "\"decoder\": {\"type\": \"ByteLevel\", \"\\ud800\": 1}, \"other\"", 1);
    let error = Tokenizer::from_json(damaged.as_bytes()).err().unwrap().to_string();
    assert!(error.starts_with("tokenizer: the library that reads tokenizers failed"), "{error}");
}

#[test]
fn special_tokens_around_a_text_are_told_from_those_of_the_text() {
    let tokenizer = Tokenizer::from_json(&fixture("goldens/bert-mlm/tokenizer.json")).unwrap();
    let (empty, text) = (tokenizer.encode("").unwrap(), tokenizer.encode("a clock").unwrap());
    // With nothing between them, all of them stand before it.
    assert_eq!((empty.specials_before, empty.specials_after, empty.text()), (2, 0, 2..2));
    assert_eq!((text.specials_before, text.specials_after), (1, 1));
    assert_eq!(text.ids[text.text()], tokenizer.plain_ids("a clock").unwrap());
}

#[test]
fn a_text_that_cannot_be_split_to_its_end_is_refused() {
    let tokenizer = Tokenizer::from_json(&fixture("goldens/gpt2/tokenizer.json")).unwrap();
    let text = format!("a{}b c", " ".repeat(1_100_000));
    for error in [tokenizer.encode(&text).unwrap_err(), tokenizer.plain_ids(&text).unwrap_err()] {
        assert!(error.to_string().contains("cannot be split into pieces"), "{error}");
    }
    assert!(tokenizer.encode("a   b c").is_ok());
}

/// A tokenizer of two words with this normalizer, where "b" is an added token.
fn with_normalizer(normalizer: &Value, normalized: bool) -> Result<Tokenizer, TokenizerError> {
    let added = json!({
        "id": 1, "content": "b", "special": true, "normalized": normalized, "single_word": false, "lstrip": false, "rstrip": false,
    });
    let file = json!({
        "version": "1.0", "added_tokens": [added], "normalizer": normalizer,
        "model": { "type": "WordLevel", "vocab": { "[UNK]": 0, "b": 1 }, "unk_token": "[UNK]" },
    });
    Tokenizer::from_json(file.to_string().as_bytes())
}

#[test]
fn many_pieces_do_not_make_a_text_grow_without_bound() {
    let normalizer = json!({ "type": "Prepend", "prepend": "x".repeat(1_000) });
    let grown = "its normalizer may make 1001 bytes of a text of 1 bytes; the limit is 64";
    // Each "a" between added tokens is normalized by itself.
    let tokenizer = with_normalizer(&normalizer, false).unwrap();
    let text = "ab".repeat(1_000);
    for error in [tokenizer.encode(&text).unwrap_err(), tokenizer.plain_ids(&text).unwrap_err()] {
        assert!(error.to_string().contains(grown), "{error}");
    }
    // So is an added token, when the file is read.
    let Err(error) = with_normalizer(&normalizer, true) else { panic!("the file is read") };
    assert!(error.to_string().contains(grown), "{error}");
}

#[test]
fn a_text_that_cannot_be_normalized_is_refused() {
    let normalizer = json!({ "type": "Replace", "pattern": { "Regex": "(a|c|ac)*(?=e)| d" }, "content": " " });
    let tokenizer = with_normalizer(&normalizer, false).unwrap();
    let error = tokenizer.encode(&format!("{} e d", "ac".repeat(30))).unwrap_err().to_string();
    assert!(error.contains("cannot be normalized by the tokenizer's expression"), "{error}");
    assert!(tokenizer.encode("ac d").is_ok());
}

#[test]
fn ids_are_decoded_as_they_stand_behind_others() {
    for name in ["llama-gqa", "gptneox-parallel", "opt-pre", "gpt2"] {
        let tokenizer = match std::fs::read(golden_directory(name).join("tokenizer.json")) {
            Ok(json) => Tokenizer::from_json(&json).unwrap(),
            Err(_) => build(None, None, None).unwrap(),
        };
        let text = "Two words, then caf\u{e9} and \u{1f600}!";
        let encoded = tokenizer.encode(text).unwrap();
        assert_eq!(tokenizer.decode(&encoded.ids[encoded.text()]).unwrap(), text, "{name}");
        assert_eq!(tokenizer.decode(&encoded.ids).unwrap(), text, "{name}: without special tokens");
        for given in 0..=encoded.ids.len() {
            let behind = tokenizer.decode_behind(&encoded.ids, given).unwrap();
            assert!(text.ends_with(&behind), "{name} behind {given}: {behind:?}");
            // A character whose bytes the two parts share is whole in the second.
            let before = tokenizer.decode(&encoded.ids[..given]).unwrap();
            let kept = before.trim_end_matches('\u{fffd}');
            assert_eq!(format!("{kept}{behind}"), text, "{name} behind {given}");
        }
        assert_eq!(tokenizer.decode(&[]).unwrap(), "");
        assert_eq!(tokenizer.decode_behind(&[], 3).unwrap(), "");
    }
}
