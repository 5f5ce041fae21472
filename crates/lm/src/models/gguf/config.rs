//! The metadata of an architecture as the `config.json` that transformers would have for the model.

use super::architecture::{Architecture, ROTATED, WINDOW};
use super::error::GgufError;
use super::file::GgufFile;
use super::metadata::{Metadata, MetadataValue};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Keys of an architecture that say nothing about the numbers, or repeat what the tensors say.
const NEUTRAL: [&str; 5] = [
    "vocab_size",
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
    "rope.scaling.orig_ctx_len",
    "tensor_data_layout",
];

/// The layers of the only Gemma 2 whose scale of attention is not that of the width of a head.
const GEMMA2_27B_LAYERS: usize = 46;

/// The frequencies' divisors of LLaMA 3.1 and later, in place of the four parameters of `rope_scaling`.
pub const ROPE_DIVISORS: &str = "rope_freqs.weight";

impl GgufFile<'_> {
    /// What the values of `general.architecture` mean.
    pub fn architecture(&self) -> Result<&'static Architecture, GgufError> {
        const KEY: &str = "general.architecture";
        let name = self.metadata.text(KEY)?.ok_or_else(|| GgufError::key(KEY, "missing"))?;
        let unsupported = || format!("`{name}` is not supported; supported: {}", Architecture::names());
        Architecture::find(name).ok_or_else(|| GgufError::key(KEY, unsupported()))
    }

    /// `config.json` of the model.
    pub fn config(&self) -> Result<Map<String, Value>, GgufError> {
        let architecture = self.architecture()?;
        let mut fields = Fields { metadata: &self.metadata, prefix: architecture.name, read: BTreeSet::new() };
        let mut config = Map::new();
        for (key, name) in architecture.required {
            let value = fields.value(key)?.ok_or_else(|| fields.error(key, "missing"))?;
            config.insert((*name).to_owned(), value);
        }
        for (key, name) in architecture.optional {
            config.extend(fields.value(key)?.map(|value| ((*name).to_owned(), value)));
        }
        let window = architecture.window.map(|name| fields.window(name, &mut config)).transpose()?.unwrap_or(false);
        // Mistral's files are of the architecture `llama`, and differ from LLaMA's in the window alone.
        let model_type = if architecture.name == "llama" && window { "mistral" } else { architecture.model_type };
        config.insert("model_type".to_owned(), model_type.into());
        config.insert("vocab_size".to_owned(), self.vocab()?.into());
        config.insert("tie_word_embeddings".to_owned(), self.tensor("output.weight").is_none().into());
        for (tensor, flag) in architecture.biases {
            config.insert((*flag).to_owned(), self.tensor(tensor).is_some().into());
        }
        fields.heads(architecture.rotated, &mut config)?;
        config.extend(fields.rope_scaling()?.map(|scaling| ("rope_scaling".to_owned(), scaling)));
        if architecture.name == "gemma2" {
            let scalar = fields.gemma2_scalar()?;
            config.insert("query_pre_attn_scalar".to_owned(), scalar.into());
        }
        if let Some(ends) = self.end_ids()? {
            config.insert("eos_token_id".to_owned(), ends.into());
        }
        fields.finish()?;
        Ok(config)
    }

    /// The divisors of the rotary frequencies, one for each pair of elements, if the file has any.
    pub fn rope_divisors(&self) -> Result<Option<Vec<f32>>, GgufError> {
        let Some(tensor) = self.tensor(ROPE_DIVISORS) else { return Ok(None) };
        let divisors = self.floats(tensor)?;
        if divisors.iter().all(|divisor| divisor.is_finite() && *divisor > 0.0) {
            return Ok(Some(divisors));
        }
        Err(GgufError::tensor(ROPE_DIVISORS, "expected positive numbers"))
    }

    /// The number of outputs of the head: the rows of the embedding, padding included.
    fn vocab(&self) -> Result<usize, GgufError> {
        const NAME: &str = "token_embd.weight";
        let embedding = self.tensor(NAME).ok_or_else(|| GgufError::tensor(NAME, "missing"))?;
        Ok(embedding.shape[0])
    }

    /// The ids of the tokens that end a text, and a turn of a conversation.
    fn end_ids(&self) -> Result<Option<Vec<usize>>, GgufError> {
        let mut ids = Vec::new();
        for key in ["tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"] {
            ids.extend(self.metadata.count(key)?.filter(|id| !ids.contains(id)));
        }
        Ok((!ids.is_empty()).then_some(ids))
    }
}

/// The values of an architecture, with a record of those that were read.
struct Fields<'f, 'a> {
    metadata: &'f Metadata<'a>,
    prefix: &'static str,
    read: BTreeSet<String>,
}

impl Fields<'_, '_> {
    fn key(&mut self, name: &str) -> String {
        let key = format!("{}.{name}", self.prefix);
        self.read.insert(key.clone());
        key
    }

    fn error(&self, name: &str, reason: &str) -> GgufError {
        GgufError::key(&format!("{}.{name}", self.prefix), reason)
    }

    /// A number or a flag, as JSON.
    fn value(&mut self, name: &str) -> Result<Option<Value>, GgufError> {
        let key = self.key(name);
        let Some(value) = self.metadata.get(&key) else { return Ok(None) };
        Ok(Some(match value {
            MetadataValue::Integer(number) => match i64::try_from(number) {
                Ok(number) => number.into(),
                Err(_) => return Err(GgufError::key(&key, format!("{number} is out of range"))),
            },
            MetadataValue::Float(number) => number.into(),
            MetadataValue::Flag(flag) => flag.into(),
            other @ (MetadataValue::Text(_) | MetadataValue::Array(_)) => {
                return Err(GgufError::key(&key, format!("expected a number, found {}", other.kind())));
            }
        }))
    }

    fn count(&mut self, name: &str) -> Result<Option<usize>, GgufError> {
        let key = self.key(name);
        self.metadata.count(&key)
    }

    /// Sets the window of attention; zero stands for none. Says whether there is one.
    fn window(&mut self, name: &str, config: &mut Map<String, Value>) -> Result<bool, GgufError> {
        let window = self.count(WINDOW)?;
        match window {
            // The families have defaults of their own.
            None => {}
            // LLaMA itself has no such key.
            Some(0) if self.prefix == "llama" => {}
            Some(0) => drop(config.insert(name.to_owned(), Value::Null)),
            Some(window) => drop(config.insert(name.to_owned(), window.into())),
        }
        Ok(window.is_some_and(|window| window > 0))
    }

    /// Checks the widths of a head, and sets the part that is rotated.
    fn heads(&mut self, rotated: Option<&str>, config: &mut Map<String, Value>) -> Result<(), GgufError> {
        let even = match (self.count("embedding_length")?, self.count("attention.head_count")?) {
            (Some(hidden), Some(heads)) => hidden / heads.max(1),
            _ => 0,
        };
        let width = self.count("attention.key_length")?.unwrap_or(even);
        if self.count("attention.value_length")?.is_some_and(|values| values != width) {
            return Err(self.error("attention.value_length", &format!("differs from the width of a key, {width}")));
        }
        let Some(dimensions) = self.count(ROTATED)? else { return Ok(()) };
        match rotated {
            Some(_) if dimensions > width => {
                Err(self.error(ROTATED, &format!("{dimensions} exceeds the width of a head, {width}")))
            }
            Some(name) => {
                let fraction = dimensions as f64 / width as f64;
                // transformers multiplies again and cuts the fraction off.
                let is_exact = (width as f64 * fraction) as usize == dimensions;
                let fraction = if is_exact { fraction } else { fraction.next_up() };
                config.insert(name.to_owned(), fraction.into());
                Ok(())
            }
            None if dimensions != width => {
                Err(self.error(ROTATED, &format!("{dimensions} differs from the width of a head, {width}")))
            }
            None => Ok(()),
        }
    }

    /// `rope_scaling`, if positions are scaled.
    fn rope_scaling(&mut self) -> Result<Option<Value>, GgufError> {
        const TYPE: &str = "rope.scaling.type";
        let key = self.key(TYPE);
        let kind = self.metadata.text(&key)?;
        let factor = self.value("rope.scaling.factor")?;
        let old_factor = self.value("rope.scale_linear")?;
        match (kind, factor.or(old_factor)) {
            (None | Some("none"), None) | (Some("none"), Some(_)) => Ok(None),
            (None | Some("linear"), Some(factor)) => Ok(Some(json!({ "rope_type": "linear", "factor": factor }))),
            (Some("linear"), None) => Err(self.error("rope.scaling.factor", "missing")),
            (Some(other), _) => Err(self.error(TYPE, &format!("`{other}` is not supported; supported: none, linear"))),
        }
    }

    /// The number whose inverse root scales Gemma's attention. Files do not state it; this is llama.cpp's rule.
    fn gemma2_scalar(&mut self) -> Result<usize, GgufError> {
        let [layers, hidden, heads, width] =
            ["block_count", "embedding_length", "attention.head_count", "attention.key_length"]
                .map(|name| self.count(name));
        let (layers, hidden, heads, width) = (layers?, hidden?, heads?, width?);
        Ok(match (layers, hidden, heads) {
            (Some(GEMMA2_27B_LAYERS), Some(hidden), Some(heads)) if heads > 0 => hidden / heads,
            _ => width.unwrap_or(1),
        })
    }

    /// Refuses every key of the architecture that was not read, since it might change the numbers. Keys of other programs
    /// have prefixes of their own.
    fn finish(mut self) -> Result<(), GgufError> {
        for name in NEUTRAL {
            self.key(name);
        }
        // Written for all models, and the only value that a decoder has.
        if self.flag("attention.causal")? == Some(false) {
            return Err(self.error("attention.causal", "only true is supported"));
        }
        let prefix = format!("{}.", self.prefix);
        let unread = self.metadata.keys().find(|key| key.starts_with(&prefix) && !self.read.contains(*key));
        match unread {
            Some(key) => Err(GgufError::key(key, "not supported, and it may change the model's results")),
            None => Ok(()),
        }
    }

    fn flag(&mut self, name: &str) -> Result<Option<bool>, GgufError> {
        let key = self.key(name);
        self.metadata.flag(&key)
    }
}
