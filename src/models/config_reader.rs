//! Reads `config.json` key by key and remembers what was read, so that no key that matters can be passed over.

use super::ModelError;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Keys that say nothing about the mathematics of scoring: training, generation, bookkeeping.
const NEUTRAL: &[&str] = &[
    "_attn_implementation_autoset",
    "_commit_hash",
    "_name_or_path",
    "activation_dropout",
    "add_cross_attention",
    "architectures",
    "attention_dropout",
    "attention_probs_dropout_prob",
    "attn_pdrop",
    "auto_map",
    "bos_token_id",
    "cache_implementation",
    "chunk_size_feed_forward",
    "classifier_dropout",
    "cross_attention_hidden_size",
    "custom_pipelines",
    "decoder_start_token_id",
    "dropout",
    "dtype",
    "embd_pdrop",
    "embed_dropout",
    "eos_token_id",
    "finetuning_task",
    "gradient_checkpointing",
    "hidden_dropout",
    "hidden_dropout_prob",
    "id2label",
    "init_std",
    "initializer_range",
    "is_decoder",
    "is_encoder_decoder",
    "label2id",
    "layerdrop",
    "model_type",
    "n_ctx",
    "num_labels",
    "output_attentions",
    "output_hidden_states",
    "pad_token_id",
    "prefix",
    "problem_type",
    "resid_dropout",
    "resid_pdrop",
    "return_dict",
    "sep_token_id",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "task_specific_params",
    "tie_encoder_decoder",
    "tokenizer_class",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "unsloth_fixed",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
];

/// More than any model has; tables of rotary positions grow with it.
const MOST_POSITIONS: usize = 1 << 20;

/// One JSON object of a configuration; `path` stands before its keys in messages.
pub struct ConfigReader<'a> {
    object: &'a Map<String, Value>,
    path: String,
    read: BTreeSet<&'a str>,
}

impl<'a> ConfigReader<'a> {
    /// A reader of the whole file.
    pub fn new(object: &'a Map<String, Value>) -> Self {
        Self { object, path: String::new(), read: NEUTRAL.iter().copied().collect() }
    }

    /// The value of a key that is present and not null.
    pub fn get(&mut self, key: &'static str) -> Option<&'a Value> {
        self.read.insert(key);
        self.object.get(key).filter(|v| !v.is_null())
    }

    /// A reader of the object under a key; within it every key must be read.
    pub fn object(&mut self, key: &'static str) -> Result<Option<ConfigReader<'a>>, ModelError> {
        let path = format!("{}{key}.", self.path);
        match self.get(key) {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(ConfigReader { object, path, read: BTreeSet::new() })),
            Some(other) => Err(self.fault(key, format!("expected an object, found {other}"))),
        }
    }

    /// A whole number of at least 1.
    pub fn count(&mut self, key: &'static str) -> Result<usize, ModelError> {
        self.count_or_none(key)?.ok_or_else(|| self.fault(key, "missing"))
    }

    /// A whole number of at least 1, or a default.
    pub fn count_or(&mut self, key: &'static str, default: usize) -> Result<usize, ModelError> {
        Ok(self.count_or_none(key)?.unwrap_or(default))
    }

    /// The most positions of a model. No tensor confirms it, and tables are as long as it says, so it is bounded.
    pub fn context(&mut self, key: &'static str, default: usize) -> Result<usize, ModelError> {
        let context = self.count_or(key, default)?;
        if context > MOST_POSITIONS {
            return Err(self.fault(key, format!("{context} positions are more than the {MOST_POSITIONS} supported")));
        }
        Ok(context)
    }

    fn count_or_none(&mut self, key: &'static str) -> Result<Option<usize>, ModelError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        // Larger sizes than any model's would only overflow later, with a worse message.
        let count = value.as_u64().filter(|n| (1..=1 << 31).contains(n)).and_then(|n| usize::try_from(n).ok());
        count.map(Some).ok_or_else(|| self.fault(key, format!("expected a whole number of at least 1, found {value}")))
    }

    /// A finite number above 0, or `None`.
    pub fn positive(&mut self, key: &'static str) -> Result<Option<f64>, ModelError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let number = value.as_f64().filter(|x| x.is_finite() && *x > 0.0);
        number.map(Some).ok_or_else(|| self.fault(key, format!("expected a number above 0, found {value}")))
    }

    /// A boolean, or a default.
    pub fn flag_or(&mut self, key: &'static str, default: bool) -> Result<bool, ModelError> {
        match self.get(key) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(self.fault(key, format!("expected true or false, found {other}"))),
        }
    }

    /// A string, or a default.
    pub fn text_or(&mut self, key: &'static str, default: &'a str) -> Result<&'a str, ModelError> {
        match self.get(key) {
            None => Ok(default),
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(self.fault(key, format!("expected a string, found {other}"))),
        }
    }

    /// Refuses every key that was not read: it might change the mathematics.
    pub fn finish(self) -> Result<(), ModelError> {
        let unread = self.object.iter().find(|(key, value)| !self.read.contains(key.as_str()) && !value.is_null());
        match unread {
            None => Ok(()),
            Some((key, _)) => Err(self.fault(key, "not understood, and it may change the model's mathematics")),
        }
    }

    /// An error about a key of this object.
    pub fn fault(&self, key: &str, reason: impl Into<String>) -> ModelError {
        ModelError::Config { key: format!("{}{key}", self.path), reason: reason.into() }
    }
}
