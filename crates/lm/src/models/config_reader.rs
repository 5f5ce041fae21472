//! Reads `config.json` key by key and records which keys were read, so that no relevant key can be ignored.

use super::error::ModelError;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Keys that do not affect the mathematics of scoring: training, generation, bookkeeping.
const NEUTRAL: &[&str] = &[
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_commit_hash",
    "_flash_attn_2_enabled",
    "_name_or_path",
    "_num_labels",
    "activation_dropout",
    "add_cross_attention",
    "architectures",
    "attention_dropout",
    "attention_probs_dropout_prob",
    "attn_pdrop",
    "auto_map",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "cache_implementation",
    "chunk_size_feed_forward",
    "classifier_dropout",
    "cross_attention_hidden_size",
    "custom_pipelines",
    "decoder_start_token_id",
    "directionality",
    "diversity_penalty",
    "do_sample",
    "dropout",
    "dtype",
    "early_stopping",
    "embd_pdrop",
    "embed_dropout",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
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
    "length_penalty",
    "max_length",
    "max_sequence_length",
    "min_length",
    "model_type",
    "n_ctx",
    "n_special",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_labels",
    "num_return_sequences",
    // Relevant to longrope only, which is refused.
    "original_max_position_embeddings",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "output_scores",
    "pad_token_id",
    "pooler_fc_size",
    "pooler_num_attention_heads",
    "pooler_num_fc_layers",
    "pooler_size_per_head",
    "pooler_type",
    "predict_special_tokens",
    "prefix",
    "problem_type",
    "remove_invalid_values",
    "repetition_penalty",
    "resid_dropout",
    "resid_pdrop",
    "return_dict",
    "return_dict_in_generate",
    "sep_token_id",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "typical_p",
    "unsloth_fixed",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
];

/// More than any model has; tables of rotary positions grow with it.
const MOST_POSITIONS: usize = 1 << 20;

/// More than any model has; lists with one entry per layer are allocated before a tensor confirms the number.
const MOST_LAYERS: usize = 10_000;

/// One JSON object of a configuration; `path` precedes its keys in messages.
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

    /// The value of a key, if it is present and not null.
    pub fn get(&mut self, key: &'static str) -> Option<&'a Value> {
        self.read.insert(key);
        self.object.get(key).filter(|v| !v.is_null())
    }

    /// A reader of the object under a key; every key of that object must be read too.
    pub fn object(&mut self, key: &'static str) -> Result<Option<ConfigReader<'a>>, ModelError> {
        let path = format!("{}{key}.", self.path);
        match self.get(key) {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(ConfigReader { object, path, read: BTreeSet::new() })),
            Some(other) => Err(self.error(key, format!("expected an object, found {other}"))),
        }
    }

    /// A positive integer.
    pub fn count(&mut self, key: &'static str) -> Result<usize, ModelError> {
        self.count_or_none(key)?.ok_or_else(|| self.error(key, "missing"))
    }

    pub fn count_or(&mut self, key: &'static str, default: usize) -> Result<usize, ModelError> {
        Ok(self.count_or_none(key)?.unwrap_or(default))
    }

    /// The maximum number of positions of a model. No tensor confirms it, and tables grow with it, so it is bounded.
    pub fn context(&mut self, key: &'static str, default: usize) -> Result<usize, ModelError> {
        let context = self.count_or(key, default)?;
        if context > MOST_POSITIONS {
            return Err(
                self.error(key, format!("{context} positions exceed the supported maximum of {MOST_POSITIONS}"))
            );
        }
        Ok(context)
    }

    /// The number of layers. It is used before any tensor confirms it, so it is bounded.
    pub fn layers(&mut self, key: &'static str) -> Result<usize, ModelError> {
        let layers = self.count(key)?;
        if layers > MOST_LAYERS {
            return Err(self.error(key, format!("{layers} layers exceed the supported maximum of {MOST_LAYERS}")));
        }
        Ok(layers)
    }

    /// A positive integer, or `None` if it is null; a default if the key is absent.
    pub fn count_or_null(&mut self, key: &'static str, default: Option<usize>) -> Result<Option<usize>, ModelError> {
        if self.object.contains_key(key) { self.count_or_none(key) } else { Ok(default) }
    }

    /// A positive number, or `None` if it is null; a default if the key is absent.
    pub fn positive_or_null(&mut self, key: &'static str, default: f64) -> Result<Option<f64>, ModelError> {
        if self.object.contains_key(key) { self.positive(key) } else { Ok(Some(default)) }
    }

    /// Refuses a flag whose value is not the only supported one.
    pub fn must_be(&mut self, key: &'static str, value: bool) -> Result<(), ModelError> {
        if self.flag_or(key, value)? == value {
            return Ok(());
        }
        Err(self.error(key, format!("only {value} is supported")))
    }

    fn count_or_none(&mut self, key: &'static str) -> Result<Option<usize>, ModelError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        // Larger sizes than any model's would only overflow later, with a less helpful message.
        let count = value.as_u64().filter(|n| (1..=1 << 31).contains(n)).and_then(|n| usize::try_from(n).ok());
        count.map(Some).ok_or_else(|| self.error(key, format!("expected a positive integer, found {value}")))
    }

    /// A positive finite number, or `None`.
    pub fn positive(&mut self, key: &'static str) -> Result<Option<f64>, ModelError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let number = value.as_f64().filter(|x| x.is_finite() && *x > 0.0);
        number.map(Some).ok_or_else(|| self.error(key, format!("expected a positive number, found {value}")))
    }

    pub fn flag_or(&mut self, key: &'static str, default: bool) -> Result<bool, ModelError> {
        match self.get(key) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(self.error(key, format!("expected true or false, found {other}"))),
        }
    }

    pub fn text_or(&mut self, key: &'static str, default: &'a str) -> Result<&'a str, ModelError> {
        match self.get(key) {
            None => Ok(default),
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(self.error(key, format!("expected a string, found {other}"))),
        }
    }

    /// Refuses every key that was not read, since it might change the mathematics. Null and empty objects are ignored.
    pub fn finish(self) -> Result<(), ModelError> {
        let has_content = |value: &Value| !value.is_null() && value.as_object().is_none_or(|object| !object.is_empty());
        let unread = self.object.iter().find(|(key, value)| !self.read.contains(key.as_str()) && has_content(value));
        match unread {
            None => Ok(()),
            Some((key, _)) => Err(self.error(key, "not supported, and it may change the model's results")),
        }
    }

    /// An error about a key of this object.
    pub fn error(&self, key: &str, reason: impl Into<String>) -> ModelError {
        ModelError::Config { key: format!("{}{key}", self.path), reason: reason.into() }
    }
}

/// Tokens that Python's `json` writes for the numbers that JSON lacks; a token that contains another precedes it.
const TOKENS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// Replaces every bare `Infinity`, `-Infinity` and `NaN` by `{"__float__": "Infinity"}` and so on, which is how
/// transformers 5 writes them in standard JSON. Strings are unchanged, and invalid JSON stays invalid.
pub fn standard_json(text: &[u8]) -> Cow<'_, [u8]> {
    let (mut rewritten, mut copied) = (Vec::new(), 0);
    let (mut position, mut in_string) = (0, false);
    while position < text.len() {
        let token = TOKENS.iter().find(|token| !in_string && text[position..].starts_with(token.as_bytes()));
        if let Some(token) = token {
            rewritten.extend_from_slice(&text[copied..position]);
            rewritten.extend_from_slice(format!(r#"{{"__float__":"{token}"}}"#).as_bytes());
            copied = position + token.len();
        }
        in_string ^= text[position] == b'"';
        // In a string, a backslash escapes the next byte, which may be a quotation mark.
        let escape = in_string && text[position] == b'\\';
        position += token.map_or(1 + usize::from(escape), |token| token.len());
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    rewritten.extend_from_slice(&text[copied..]);
    Cow::Owned(rewritten)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(text: &str) -> String {
        String::from_utf8(standard_json(text.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn the_three_numbers_are_rewritten_wherever_a_value_may_stand() {
        let infinity = r#"{"__float__":"Infinity"}"#;
        assert_eq!(rewritten("Infinity"), infinity);
        assert_eq!(rewritten(r#"{"limit": [0.0, Infinity]}"#), format!(r#"{{"limit": [0.0, {infinity}]}}"#));
        assert_eq!(rewritten("[-Infinity,NaN]"), r#"[{"__float__":"-Infinity"},{"__float__":"NaN"}]"#);
        let value: serde_json::Value = serde_json::from_str(&rewritten(r#"{"a":NaN,"b":[-1,-Infinity]}"#)).unwrap();
        assert_eq!(value, serde_json::json!({"a": {"__float__": "NaN"}, "b": [-1, {"__float__": "-Infinity"}]}));
    }

    #[test]
    fn strings_are_left_alone() {
        for text in [
            r#"{"NaN": "Infinity", "a": "-Infinity and NaN"}"#,
            r#"["a \" Infinity", "b"]"#,
            r#"["ends with a backslash \\", "NaN"]"#,
            r#"["\\\" NaN"]"#,
            r#"{"__float__": "Infinity"}"#,
            r#"["é NaN ü"]"#,
            "",
        ] {
            assert!(matches!(standard_json(text.as_bytes()), Cow::Borrowed(same) if same == text.as_bytes()), "{text}");
        }
        assert_eq!(rewritten(r#"["a\\", NaN, "NaN"]"#), r#"["a\\", {"__float__":"NaN"}, "NaN"]"#);
        assert_eq!(rewritten(r#"["\"", NaN]"#), r#"["\"", {"__float__":"NaN"}]"#);
    }

    #[test]
    fn text_that_ends_anywhere_is_no_trouble() {
        let text = br#"{"a\"": [-Infinity, "NaN\\"]}"#;
        for end in 0..text.len() {
            standard_json(&text[..end]);
        }
        assert_eq!(rewritten("-Infinit"), "-Infinit");
    }
}
