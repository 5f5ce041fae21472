//! Determines whether two tokenizers split texts into the same tokens, from their content instead of their files'
//! bytes.

use super::TokenizerError;
use super::checked_normalizer::CheckedNormalizer;
use super::encode::Tokenizer;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokenizers::ModelWrapper;
use tracing::subscriber::{NoSubscriber, with_default};

/// The content of the fingerprint, each part in an order that does not depend on the file.
#[derive(Serialize)]
struct Parts<'t> {
    model: &'static str,
    /// Ids with their tokens, added tokens included.
    tokens: Vec<(u32, String)>,
    rules: Rules,
    normalizer: Option<&'t CheckedNormalizer>,
}

/// The rules that select one of several possible tokenizations.
#[derive(Serialize)]
enum Rules {
    /// Pairs of tokens, in the order in which they are merged.
    Merges(Vec<(String, String)>),
    /// The tokens of a unigram model with their scores.
    Scores(Vec<(String, f64)>),
    /// The longest token is used.
    Longest,
}

impl Tokenizer {
    /// SHA-256 in hexadecimal of the map from ids to tokens (added ones included), of the merges (or the scores of a
    /// unigram model) and of the normalizer. Two files of the same tokenizer have the same fingerprint however they are
    /// formatted. It is computed when first requested, since it takes a while for a large vocabulary.
    pub fn fingerprint(&self) -> Result<&str, TokenizerError> {
        let computed =
            self.fingerprint.get_or_init(|| self.compute_fingerprint().map_err(|e| TokenizerError(e.to_string())));
        computed.as_deref().map_err(TokenizerError::clone)
    }

    /// Returns true if both give the same ids to the same tokens by the same rules; see [`Tokenizer::fingerprint`]. One that adds no
    /// special tokens on purpose is the same as another such one alone.
    pub fn same_tokens(&self, other: &Self) -> bool {
        self.adds_specials == other.adds_specials
            && matches!((self.fingerprint(), other.fingerprint()), (Ok(mine), Ok(theirs)) if mine == theirs)
    }

    fn compute_fingerprint(&self) -> serde_json::Result<String> {
        let mut tokens: Vec<(u32, String)> =
            self.inner.get_vocab(true).into_iter().map(|(token, id)| (id, token)).collect();
        tokens.sort_unstable();
        let model = self.inner.get_model();
        let parts = Parts { model: kind(model), tokens, rules: rules(model)?, normalizer: self.inner.get_normalizer() };
        let bytes = serde_json::to_vec(&parts)?;
        Ok(Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

fn kind(model: &ModelWrapper) -> &'static str {
    match model {
        ModelWrapper::BPE(_) => "BPE",
        ModelWrapper::WordPiece(_) => "WordPiece",
        ModelWrapper::WordLevel(_) => "WordLevel",
        ModelWrapper::Unigram(_) => "Unigram",
    }
}

fn rules(model: &ModelWrapper) -> serde_json::Result<Rules> {
    #[derive(Deserialize)]
    struct BpeModel {
        merges: Vec<(String, String)>,
    }
    Ok(match model {
        ModelWrapper::BPE(_) => Rules::Merges(serde_json::from_slice::<BpeModel>(&serialize(model)?)?.merges),
        ModelWrapper::Unigram(unigram) => Rules::Scores(unigram.iter().cloned().collect()),
        ModelWrapper::WordPiece(_) | ModelWrapper::WordLevel(_) => Rules::Longest,
    })
}

/// The library does not expose the merges, but serializes them in their order. It then warns about ids without a token,
/// which many models have, as if they were an error; that warning is suppressed.
fn serialize(model: &ModelWrapper) -> serde_json::Result<Vec<u8>> {
    with_default(NoSubscriber::default(), || serde_json::to_vec(model))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::from_files;
    use serde_json::{Map, Value, json};
    use std::path::{Path, PathBuf};

    fn golden(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/goldens").join(name)
    }

    fn saved(name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(golden(name).join("tokenizer.json")).unwrap()).unwrap()
    }

    fn tokenizer(json: &Value) -> Tokenizer {
        Tokenizer::from_json(json.to_string().as_bytes()).unwrap()
    }

    /// The same value with the keys of every object in reverse order.
    fn reversed(value: &Value) -> Value {
        match value {
            Value::Object(object) => {
                Value::Object(object.iter().rev().map(|(key, value)| (key.clone(), reversed(value))).collect())
            }
            Value::Array(values) => values.iter().map(reversed).collect(),
            other => other.clone(),
        }
    }

    #[test]
    fn the_format_of_the_file_does_not_matter() {
        let json = saved("opt-pre");
        let original = tokenizer(&json);
        let fingerprint = original.fingerprint().unwrap();
        assert!(fingerprint.len() == 64 && fingerprint.bytes().all(|byte| byte.is_ascii_hexdigit()), "{fingerprint}");
        let pretty = serde_json::to_vec_pretty(&reversed(&json)).unwrap();
        assert!(original.same_tokens(&Tokenizer::from_json(&pretty).unwrap()));

        let mut other = json.clone();
        other["truncation"] = json!({ "direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0 });
        other["padding"] = json!({
            "strategy": { "Fixed": 9 }, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 1,
            "pad_type_id": 0, "pad_token": "<pad>",
        });
        other["post_processor"] = Value::Null;
        assert!(original.same_tokens(&tokenizer(&other)));

        // Merges in the format of older files: one string per pair.
        let pairs = other["model"]["merges"].as_array().unwrap().clone();
        let joined = pairs.iter().map(|pair| format!("{} {}", pair[0].as_str().unwrap(), pair[1].as_str().unwrap()));
        other["model"]["merges"] = joined.collect();
        assert!(original.same_tokens(&tokenizer(&other)));
    }

    #[test]
    fn every_change_of_the_tokens_or_their_rules_is_detected() {
        let json = saved("opt-pre");
        let original = tokenizer(&json);
        let different = |change: fn(&mut Value)| {
            let mut changed = json.clone();
            change(&mut changed);
            assert_ne!(changed, json);
            assert!(!original.same_tokens(&tokenizer(&changed)));
        };
        different(|json| drop(json["model"]["merges"].as_array_mut().unwrap().pop()));
        different(|json| json["model"]["merges"].as_array_mut().unwrap().swap(0, 1));
        different(|json| json["normalizer"] = json!({ "type": "Lowercase" }));
        different(|json| {
            let added = json["added_tokens"].as_array_mut().unwrap();
            let mut new = added[0].clone();
            new["id"] = json!(410);
            new["content"] = json!("<new>");
            added.push(new);
        });
        different(|json| {
            // Two tokens that no merge produces exchange their ids.
            let vocab = json["model"]["vocab"].as_object_mut().unwrap();
            let (first, second) = (vocab["!"].clone(), vocab["?"].clone());
            vocab.extend(Map::from_iter([("!".to_owned(), second), ("?".to_owned(), first)]));
        });
    }

    #[test]
    fn vocab_and_merges_give_the_saved_tokenizer() {
        let read = |name: &str| Ok::<_, TokenizerError>(std::fs::read(golden("opt-pre").join(name)).ok());
        let (built, files) = from_files(|name| if name == "tokenizer.json" { Ok(None) } else { read(name) }).unwrap();
        assert_eq!(files[0].0, "vocab.json");
        assert!(built.same_tokens(&tokenizer(&saved("opt-pre"))));
    }

    #[test]
    fn models_of_every_kind_have_different_fingerprints() {
        let unigram = |score: f64| {
            tokenizer(&json!({
                "version": "1.0", "added_tokens": [],
                "model": { "type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", score]] },
            }))
        };
        let longest = |kind: &str| {
            let mut model = json!({ "type": kind, "unk_token": "<unk>", "vocab": { "<unk>": 0, "a": 1 } });
            if kind == "WordPiece" {
                model["continuing_subword_prefix"] = json!("##");
                model["max_input_chars_per_word"] = json!(100);
            }
            tokenizer(&json!({ "version": "1.0", "added_tokens": [], "model": model }))
        };
        let all = [unigram(-1.0), unigram(-2.0), longest("WordLevel"), longest("WordPiece")];
        for (index, one) in all.iter().enumerate() {
            assert!(one.same_tokens(&one.clone()));
            assert!(all.iter().skip(index + 1).all(|other| !one.same_tokens(other)), "{index}");
        }
        assert!(unigram(-1.0).same_tokens(&unigram(-1.0)));
        let bert = golden("bert-mlm").join("tokenizer.json");
        assert!(Tokenizer::from_json(&std::fs::read(bert).unwrap()).unwrap().fingerprint().is_ok());
    }
}
