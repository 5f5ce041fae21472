//! Token counts of reference corpora: the file that `pdr-audit count-tokens` writes, and those of the settings by id.

use crate::config;
use lm::tokenizer::Tokenizer;
use mia::methods::{TokenCounts, TokenCountsError};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The value of `format` in a file.
pub const FORMAT: &str = "pdr-audit token counts 1";

/// More ids than any vocabulary has.
const MOST_IDS: usize = 1 << 24;

/// A file of token counts: one JSON object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountsFile {
    /// [`FORMAT`].
    pub format: String,
    /// [`Tokenizer::fingerprint`] of the tokenizer that counted.
    pub tokenizer: String,
    /// The id of the model whose tokenizer that was.
    pub model: String,
    /// Number of texts tokenized.
    pub texts: u64,
    /// The sum of the counts.
    pub tokens: u64,
    /// By token id; as many as the tokenizer has ids.
    pub counts: Vec<u64>,
}

/// Token counts that requests can name.
#[derive(Clone, Debug)]
pub struct Counts {
    pub id: String,
    /// [`Tokenizer::fingerprint`] of the tokenizer that counted.
    pub fingerprint: String,
    pub table: Arc<TokenCounts>,
}

#[derive(Debug, thiserror::Error)]
#[error("token counts `{id}`: {}: {fault}", file.display())]
pub struct CountsError {
    pub id: String,
    pub file: PathBuf,
    pub fault: CountsFault,
}

/// Fault in a file of token counts.
#[derive(Debug, thiserror::Error)]
pub enum CountsFault {
    #[error("cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    #[error("is not what `pdr-audit count-tokens` writes: {0}")]
    Json(#[from] serde_json::Error),
    #[error("`format` is {format}, not \"{FORMAT}\"")]
    Format { format: String },
    #[error("`counts` has {0} entries; no tokenizer has more than {MOST_IDS} ids")]
    Ids(usize),
    #[error("`counts`: {0}")]
    Table(#[from] TokenCountsError),
    /// The counts are not all there, or were changed.
    #[error("`tokens` is {tokens}, but the counts add up to {sum}")]
    Sum { tokens: u64, sum: u64 },
}

impl Counts {
    pub fn load(id: &str, file: &Path) -> Result<Self, CountsFault> {
        Self::read(id, &std::fs::read(file)?)
    }

    fn read(id: &str, bytes: &[u8]) -> Result<Self, CountsFault> {
        #[derive(Deserialize)]
        struct Head {
            #[serde(default)]
            format: serde_json::Value,
        }
        // First of all: a file of another version may have other keys.
        let format = serde_json::from_slice::<Head>(bytes)?.format;
        if format != FORMAT {
            return Err(CountsFault::Format { format: format.to_string() });
        }
        let CountsFile { tokenizer, tokens, counts, .. } = serde_json::from_slice(bytes)?;
        if counts.len() > MOST_IDS {
            return Err(CountsFault::Ids(counts.len()));
        }
        let table = TokenCounts::new(counts)?;
        if table.tokens() != tokens {
            return Err(CountsFault::Sum { tokens, sum: table.tokens() });
        }
        Ok(Self { id: id.to_owned(), fingerprint: tokenizer, table: Arc::new(table) })
    }

    /// Returns true if the counts are of this tokenizer's tokens.
    pub fn fit(&self, tokenizer: &Tokenizer) -> bool {
        tokenizer.fingerprint().is_ok_and(|fingerprint| fingerprint == self.fingerprint)
    }
}

/// Loads all token counts of the settings.
pub fn load_token_counts(settings: &[config::TokenCountsSettings]) -> Result<Vec<Arc<Counts>>, CountsError> {
    let load = |config::TokenCountsSettings { id, file }: &config::TokenCountsSettings| match Counts::load(id, file) {
        Ok(counts) => Ok(Arc::new(counts)),
        Err(fault) => Err(CountsError { id: id.clone(), file: file.clone(), fault }),
    };
    settings.iter().map(load).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn good() -> Value {
        json!({ "format": FORMAT, "tokenizer": "ab", "model": "demo", "texts": 2, "tokens": 100, "counts": [50, 30, 15, 5] })
    }

    fn with(key: &str, value: Value) -> Value {
        let mut file = good();
        file[key] = value;
        file
    }

    #[test]
    fn a_good_file_gives_its_table() {
        let counts = Counts::read("c4", good().to_string().as_bytes()).unwrap();
        assert_eq!((counts.id.as_str(), counts.fingerprint.as_str()), ("c4", "ab"));
        assert_eq!(counts.table.frequency(0), 51.0 / 104.0);
        let read: CountsFile = serde_json::from_value(good()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), good());
    }

    #[test]
    fn every_fault_of_a_file_is_named() {
        let fault = |file: String| Counts::read("c4", file.as_bytes()).unwrap_err().to_string();
        let cases = [
            (with("format", json!("pdr-audit token counts 2")), "`format` is \"pdr-audit token counts 2\", not"),
            (json!({ "counts": [1] }), "`format` is null, not \"pdr-audit token counts 1\""),
            (with("more", json!(1)), "unknown field `more`"),
            (json!({ "format": FORMAT }), "missing field `tokenizer`"),
            (with("counts", json!([50, -1])), "-1"),
            (with("counts", json!([50, 1.5])), "1.5"),
            (with("counts", json!([50, 30, 15])), "`tokens` is 100, but the counts add up to 95"),
            (with("tokens", json!(101)), "`tokens` is 101, but the counts add up to 100"),
            (with("counts", json!([])), "no token was counted"),
            (with("counts", json!([u64::MAX, 1])), "more than can be counted"),
        ];
        for (file, words) in cases {
            let said = fault(file.to_string());
            assert!(said.contains(words), "{said}");
        }
        // As text, since a tree of that many numbers takes seconds.
        let many =
            with("counts", json!(["many"])).to_string().replace("\"many\"", &format!("{}0", "0,".repeat(MOST_IDS)));
        assert!(fault(many).contains("`counts` has 16777217 entries"));
        let whole = good().to_string();
        for end in 0..whole.len() {
            assert!(fault(whole[..end].to_owned()).contains("is not what `pdr-audit count-tokens` writes: "));
        }
    }

    #[test]
    fn settings_are_loaded_in_order_and_a_fault_names_id_and_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, content).unwrap();
            path
        };
        let declared = |id: &str, file: &Path| config::TokenCountsSettings { id: id.to_owned(), file: file.to_owned() };
        let good = file("good.json", &good().to_string());
        let counts = load_token_counts(&[declared("b", &good), declared("a", &good)]).unwrap();
        assert_eq!(counts.iter().map(|counts| counts.id.as_str()).collect::<Vec<_>>(), ["b", "a"]);

        let absent = directory.path().join("absent.json");
        for bad in [file("bad.json", "{"), absent] {
            let said = load_token_counts(&[declared("b", &good), declared("c4", &bad)]).unwrap_err().to_string();
            assert!(said.starts_with(&format!("token counts `c4`: {}: ", bad.display())), "{said}");
        }
    }
}
