//! The tokenizer of a GGUF file as the files that transformers has for it: `tokenizer.json` and `tokenizer_config.json`.
//!
//! What the file does not state exactly is refused, with the advice to name the tokenizer of the original.

use super::error::GgufError;
use super::file::GgufFile;
use super::metadata::Metadata;
use super::tokenizer_rules::{ByteLevelRules, byte_level};
use super::vocabulary::{ADVICE, MERGES, SPACE, TOKENS, Vocabulary};
use serde_json::{Map, Value, json};

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
