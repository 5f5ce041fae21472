//! The tokenizer of a GGUF file as the files that transformers has for it: `tokenizer.json` and `tokenizer_config.json`.
//!
//! What the file does not state exactly is refused, with the advice to name the tokenizer of the original.

use super::error::GgufError;
use super::file::GgufFile;
use super::metadata::Metadata;
use super::tokenizer_rules::{ByteLevelRules, byte_level};
use serde_json::{Map, Value, json};
use std::cmp::Ordering;
use std::collections::BTreeMap;

const ADVICE: &str = "name the tokenizer of the original model by the setting `tokenizer`";

/// Bytes of the longest token whose halves are looked for, to derive merges; those of vocabularies have less than 200.
const LONGEST_TOKEN: usize = 512;

/// How many times the bytes of the tokens derived merges may have; those of vocabularies have three times as many.
const MOST_MERGES: usize = 16;

/// The kinds of tokens by their numbers in ggml.
const UNKNOWN: i128 = 2;
const CONTROL: i128 = 3;
const USER_DEFINED: i128 = 4;

/// The character that stands for a space in SentencePiece's tokens.
const SPACE: &str = "\u{2581}";

/// The tokens of a file.
struct Vocabulary<'a> {
    tokens: Vec<&'a str>,
    /// Those of Gemma with spaces as SentencePiece writes them.
    spelled: Vec<String>,
    kinds: Vec<i128>,
    ids: BTreeMap<String, usize>,
}

impl GgufFile<'_> {
    /// `tokenizer.json`.
    pub fn tokenizer(&self) -> Result<Value, GgufError> {
        const MODEL: &str = "tokenizer.ggml.model";
        let metadata = &self.metadata;
        let kind = metadata.text(MODEL)?.ok_or_else(|| GgufError::key(MODEL, format!("missing; {ADVICE}")))?;
        check_unsupported(metadata)?;
        let is_gemma = metadata.text("general.architecture")? == Some("gemma2");
        let vocabulary = Vocabulary::read(metadata, kind == "llama" && is_gemma)?;
        match kind {
            "gpt2" => self.byte_level(&vocabulary),
            "llama" => self.sentence_piece(&vocabulary, is_gemma),
            other => {
                let reason = format!("`{other}` is not supported; supported: gpt2, llama. For others, {ADVICE}");
                Err(GgufError::key(MODEL, reason))
            }
        }
    }

    /// `tokenizer_config.json`: the special tokens and the chat template.
    pub fn tokenizer_config(&self) -> Result<Value, GgufError> {
        let metadata = &self.metadata;
        let tokens = metadata.texts("tokenizer.ggml.tokens")?.unwrap_or_default();
        let mut config = Map::new();
        let names = [("bos_token", "bos"), ("eos_token", "eos"), ("unk_token", "unknown"), ("pad_token", "padding")];
        for (name, key) in names {
            let key = format!("tokenizer.ggml.{key}_token_id");
            let Some(id) = metadata.count(&key)? else { continue };
            config.insert(name.to_owned(), token(&tokens, &key, id)?.into());
        }
        let template = metadata.text("tokenizer.chat_template")?;
        config.extend(template.map(|template| ("chat_template".to_owned(), template.into())));
        Ok(config.into())
    }

    fn byte_level(&self, vocabulary: &Vocabulary) -> Result<Value, GgufError> {
        const PRE: &str = "tokenizer.ggml.pre";
        let metadata = &self.metadata;
        let name = metadata.text(PRE)?.ok_or_else(|| GgufError::key(PRE, format!("missing; {ADVICE}")))?;
        let rules = ByteLevelRules::find(name).ok_or_else(|| {
            let names = ByteLevelRules::names();
            GgufError::key(PRE, format!("`{name}` is not supported; supported: {names}. For others, {ADVICE}"))
        })?;
        let merges = vocabulary.stated_merges(metadata)?;
        let merges = merges.ok_or_else(|| GgufError::key(MERGES, format!("missing; {ADVICE}")))?;
        Ok(json!({
            "version": "1.0",
            "added_tokens": vocabulary.added(),
            "normalizer": rules.normalizer(),
            "pre_tokenizer": rules.pre_tokenizer(),
            "post_processor": self.post_processor(vocabulary, rules.adds_bos, Some(byte_level(false)))?,
            "decoder": byte_level(true),
            "model": {
                "type": "BPE", "ignore_merges": rules.ignore_merges(), "vocab": vocabulary.ids, "merges": merges,
            },
        }))
    }

    /// SentencePiece's BPE: bytes that are in no token have tokens of their own, and a space comes before every text, where
    /// the file does not say otherwise.
    fn sentence_piece(&self, vocabulary: &Vocabulary, is_gemma: bool) -> Result<Value, GgufError> {
        const UNKNOWN_ID: &str = "tokenizer.ggml.unknown_token_id";
        let metadata = &self.metadata;
        let byte = |byte: u8| format!("<0x{byte:02X}>");
        if let Some(missing) = (0..=255).map(byte).find(|byte| !vocabulary.ids.contains_key(byte)) {
            return Err(GgufError::key(TOKENS, format!("lacks the token `{missing}` of a byte; {ADVICE}")));
        }
        let unknown = token(&vocabulary.tokens, UNKNOWN_ID, metadata.count(UNKNOWN_ID)?.unwrap_or(0))?;
        let adds_space = metadata.flag("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
        let merges = match vocabulary.stated_merges(metadata)? {
            Some(merges) => merges,
            None => vocabulary.derived_merges(&vocabulary.ranks(metadata, is_gemma)?)?,
        };
        let replace = json!({ "type": "Replace", "pattern": { "String": " " }, "content": SPACE });
        let prepend = json!({ "type": "Prepend", "prepend": SPACE });
        let normalizers = if adds_space { vec![prepend, replace] } else { vec![replace] };
        let mut decoders = vec![
            json!({ "type": "Replace", "pattern": { "String": SPACE }, "content": " " }),
            json!({ "type": "ByteFallback" }),
            json!({ "type": "Fuse" }),
        ];
        if adds_space {
            decoders.push(json!({ "type": "Strip", "content": " ", "start": 1, "stop": 0 }));
        }
        Ok(json!({
            "version": "1.0",
            "added_tokens": vocabulary.added(),
            "normalizer": { "type": "Sequence", "normalizers": normalizers },
            "pre_tokenizer": null,
            "post_processor": self.post_processor(vocabulary, true, None)?,
            "decoder": { "type": "Sequence", "decoders": decoders },
            "model": {
                "type": "BPE", "unk_token": unknown, "fuse_unk": true, "byte_fallback": true,
                "vocab": vocabulary.ids, "merges": merges,
            },
        }))
    }

    /// The step that adds the tokens before and after every text, and `offsets` before it.
    fn post_processor(
        &self,
        vocabulary: &Vocabulary,
        adds_bos: bool,
        offsets: Option<Value>,
    ) -> Result<Value, GgufError> {
        let mut single = Vec::new();
        let mut special = Map::new();
        let sequence = json!({ "Sequence": { "id": "A", "type_id": 0 } });
        for (end, adds) in [("bos", adds_bos), ("eos", false)] {
            let flag = format!("tokenizer.ggml.add_{end}_token");
            if self.metadata.flag(&flag)?.unwrap_or(adds) {
                let key = format!("tokenizer.ggml.{end}_token_id");
                let id = self.metadata.count(&key)?.ok_or_else(|| GgufError::key(&key, "missing"))?;
                let token = token(&vocabulary.tokens, &key, id)?;
                single.push(json!({ "SpecialToken": { "id": token, "type_id": 0 } }));
                special.insert(token.to_owned(), json!({ "id": token, "ids": [id], "tokens": [token] }));
            }
            if end == "bos" {
                single.push(sequence.clone());
            }
        }
        let pair = json!({ "Sequence": { "id": "B", "type_id": 1 } });
        let template = json!({
            "type": "TemplateProcessing", "single": single, "pair": [sequence, pair], "special_tokens": special,
        });
        Ok(match (special.is_empty(), offsets) {
            (true, offsets) => offsets.into(),
            (false, Some(offsets)) => json!({ "type": "Sequence", "processors": [offsets, template] }),
            (false, None) => template,
        })
    }
}

const TOKENS: &str = "tokenizer.ggml.tokens";
const MERGES: &str = "tokenizer.ggml.merges";

/// Refuses what would change the ids and is not in the files that are made.
fn check_unsupported(metadata: &Metadata) -> Result<(), GgufError> {
    for (key, usual) in [
        ("tokenizer.ggml.add_sep_token", false),
        ("tokenizer.ggml.remove_extra_whitespaces", false),
        ("tokenizer.ggml.escape_whitespaces", true),
    ] {
        if metadata.flag(key)?.is_some_and(|flag| flag != usual) {
            return Err(GgufError::key(key, format!("only {usual} is supported; {ADVICE}")));
        }
    }
    const CHARSMAP: &str = "tokenizer.ggml.precompiled_charsmap";
    if metadata.array(CHARSMAP)?.is_some_and(|map| map.len() > 0) {
        return Err(GgufError::key(CHARSMAP, format!("not supported; {ADVICE}")));
    }
    Ok(())
}

/// The token of an id that a key names.
fn token<'a>(tokens: &[&'a str], key: &str, id: usize) -> Result<&'a str, GgufError> {
    let missing = || GgufError::key(key, format!("there is no token {id}; the file has {}", tokens.len()));
    tokens.get(id).copied().ok_or_else(missing)
}

impl<'a> Vocabulary<'a> {
    /// Reads the tokens. Their number is that of their kinds, and no two are spelled alike.
    fn read(metadata: &Metadata<'a>, is_gemma: bool) -> Result<Self, GgufError> {
        const KINDS: &str = "tokenizer.ggml.token_type";
        let tokens = metadata.texts(TOKENS)?.ok_or_else(|| GgufError::key(TOKENS, format!("missing; {ADVICE}")))?;
        let kinds = match metadata.array(KINDS)? {
            Some(kinds) => kinds.integers().map_err(|reason| GgufError::key(KINDS, reason))?,
            None => vec![1; tokens.len()],
        };
        if kinds.len() != tokens.len() {
            return Err(GgufError::key(KINDS, format!("has {} entries for {} tokens", kinds.len(), tokens.len())));
        }
        // Gemma's runs of spaces are tokens of their own, and files have them as they are.
        let is_run = |token: &str| is_gemma && !token.is_empty() && token.bytes().all(|byte| byte == b' ');
        let spell = |token: &&str| if is_run(token) { token.replace(' ', SPACE) } else { (*token).to_owned() };
        let spelled: Vec<String> = tokens.iter().map(spell).collect();
        let mut ids = BTreeMap::new();
        for (id, token) in spelled.iter().enumerate() {
            if let Some(other) = ids.insert(token.clone(), id) {
                return Err(GgufError::key(
                    TOKENS,
                    format!("{token:?} is listed twice, as {other} and {id}; {ADVICE}"),
                ));
            }
        }
        Ok(Self { tokens, spelled, kinds, ids })
    }

    /// The tokens that texts are searched for before anything else is done with them.
    fn added(&self) -> Vec<Value> {
        let added = |(id, kind): (usize, &i128)| {
            let special = match *kind {
                UNKNOWN | CONTROL => true,
                USER_DEFINED => false,
                _ => return None,
            };
            Some(json!({
                "id": id, "content": self.spelled[id], "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": special,
            }))
        };
        self.kinds.iter().enumerate().filter_map(added).collect()
    }

    /// The merges that the file states, each two tokens with a space between them.
    fn stated_merges(&self, metadata: &Metadata<'a>) -> Result<Option<Vec<(String, String)>>, GgufError> {
        let Some(merges) = metadata.texts(MERGES)? else { return Ok(None) };
        let pair = |merge: &str| {
            let error = |reason: &str| GgufError::key(MERGES, format!("{merge:?} {reason}"));
            let (left, right) = merge.split_once(' ').ok_or_else(|| error("is not two tokens"))?;
            let is_token = |token: &str| self.ids.contains_key(token);
            if is_token(left) && is_token(right) && is_token(&[left, right].concat()) {
                Ok((left.to_owned(), right.to_owned()))
            } else {
                Err(error("has a part that is no token"))
            }
        };
        merges.into_iter().map(pair).collect::<Result<_, _>>().map(Some)
    }

    /// The rank of each token: what has a higher one is merged first. Of Gemma, whose scores do not follow its merges, it is
    /// the order of the tokens.
    fn ranks(&self, metadata: &Metadata<'a>, is_gemma: bool) -> Result<Vec<f32>, GgufError> {
        const SCORES: &str = "tokenizer.ggml.scores";
        if is_gemma {
            return Ok((0..self.tokens.len()).map(|id| -(id as f32)).collect());
        }
        let scores = metadata.array(SCORES)?.ok_or_else(|| GgufError::key(SCORES, format!("missing; {ADVICE}")))?;
        let scores = scores.floats().map_err(|reason| GgufError::key(SCORES, reason))?;
        if scores.len() != self.tokens.len() {
            let reason = format!("has {} entries for {} tokens", scores.len(), self.tokens.len());
            return Err(GgufError::key(SCORES, reason));
        }
        if scores.iter().any(|score| score.is_nan()) {
            return Err(GgufError::key(SCORES, "has an entry that is not a number"));
        }
        Ok(scores)
    }

    /// Every pair of tokens that makes up a token, as transformers derives merges: by the rank of what they make up, then by
    /// the lengths of left and right, the largest first, and then by the ids of both.
    fn derived_merges(&self, ranks: &[f32]) -> Result<Vec<(String, String)>, GgufError> {
        let most = self.spelled.iter().map(String::len).sum::<usize>().saturating_mul(MOST_MERGES);
        let (mut merges, mut bytes) = (Vec::new(), 0);
        for (id, token) in self.spelled.iter().enumerate() {
            if token.len() > LONGEST_TOKEN {
                return Err(GgufError::key(TOKENS, format!("token {id} has {} bytes; {ADVICE}", token.len())));
            }
            for (at, _) in token.char_indices().skip(1) {
                let (left, right) = token.split_at(at);
                let (Some(&one), Some(&other)) = (self.ids.get(left), self.ids.get(right)) else { continue };
                bytes += token.len();
                if bytes > most {
                    return Err(GgufError::key(TOKENS, format!("make up each other in too many ways; {ADVICE}")));
                }
                merges.push((ranks[id], left.chars().count(), right.chars().count(), id, (one, other)));
            }
        }
        merges.sort_by(|a, b| {
            let by_rank = b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal);
            by_rank.then((b.1, b.2).cmp(&(a.1, a.2))).then((a.3, a.4).cmp(&(b.3, b.4)))
        });
        let texts = |id: usize| self.spelled[id].clone();
        Ok(merges.into_iter().map(|(.., (left, right))| (texts(left), texts(right))).collect())
    }
}
