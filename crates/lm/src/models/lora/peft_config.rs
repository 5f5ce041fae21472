//! `adapter_config.json`, as PEFT writes it.

use serde_json::{Map, Value, json};

/// Keys that say nothing about the numbers, or that the tensors themselves answer.
const IGNORED: &[&str] = &[
    "auto_mapping",
    "eva_config",
    "exclude_modules",
    "fan_in_fan_out",
    "inference_mode",
    "layers_pattern",
    "layers_to_transform",
    "megatron_config",
    "megatron_core",
    "peft_version",
    "qalora_group_size",
    "revision",
    "runtime_config",
    "task_type",
];

/// Unsupported options that change the numbers: key and name.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("use_dora", "DoRA"),
    ("use_qalora", "QALoRA"),
    ("use_bdlora", "block-diagonal LoRA"),
    ("lora_bias", "a bias of the adapter"),
    ("modules_to_save", "modules that are trained as a whole"),
    ("rank_pattern", "a rank for each module"),
    ("alpha_pattern", "an alpha for each module"),
    ("layer_replication", "replicated layers"),
    ("trainable_token_indices", "trained rows of the embedding"),
    ("target_parameters", "an adapter of parameters that are no modules"),
    ("alora_invocation_tokens", "activated LoRA"),
    ("loftq_config", "LoftQ, which changes the base"),
    ("corda_config", "CorDA, which changes the base"),
];

/// The ways of initialising that leave the base as it is.
const INITIALISATIONS: &[&str] = &["gaussian", "eva", "orthogonal"];

/// Description of an adapter, without its tensors.
#[derive(Clone, Debug, PartialEq)]
pub struct PeftConfig {
    pub rank: usize,
    pub alpha: f64,
    /// Share of inputs that were dropped while tuning; nothing is dropped while scoring.
    pub dropout: f64,
    /// Names of the modules that it changes, or the last parts of them; empty where a pattern names them.
    pub target_modules: Vec<String>,
    /// True if it changes these modules in every layer, so that no list chooses among the layers.
    pub has_all_layers: bool,
    /// True if changes are scaled by `alpha / sqrt(r)` (Kalajdzievski 2023, arXiv:2312.03732) instead of `alpha / r`.
    pub rank_stabilized: bool,
    /// Name of the base model in the file; `None` if there is none.
    pub base: Option<String>,
    /// The commit, branch or tag of the base, if it is a repository.
    pub revision: Option<String>,
}

impl PeftConfig {
    /// Factor of `B A x`.
    pub fn scale(&self) -> f64 {
        let rank = self.rank as f64;
        self.alpha / if self.rank_stabilized { rank.sqrt() } else { rank }
    }

    /// Reads the file.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let object = value.as_object().ok_or("expected a JSON object")?;
        if object.get("peft_type").and_then(Value::as_str) != Some("LORA") {
            let kind = object.get("peft_type").unwrap_or(&Value::Null);
            return Err(format!("key `peft_type`: {kind} is not supported; supported: \"LORA\""));
        }
        refuse_unsupported(object)?;
        Ok(Self {
            rank: positive(object, "r")?
                .as_u64()
                .and_then(|rank| usize::try_from(rank).ok())
                .ok_or_else(|| format!("key `r`: expected a whole number above 0, got {}", object["r"]))?,
            alpha: positive(object, "lora_alpha")?.as_f64().unwrap_or_default(),
            dropout: object.get("lora_dropout").and_then(Value::as_f64).unwrap_or_default(),
            target_modules: names(object.get("target_modules")),
            has_all_layers: object.get("layers_to_transform").is_none_or(is_off),
            rank_stabilized: flag(object, "use_rslora")?,
            base: text(object, "base_model_name_or_path"),
            revision: text(object, "revision"),
        })
    }

    /// The file, for PEFT. `transposed` says whether the base stores its projections `[in, out]`.
    pub fn write(&self, transposed: bool) -> Value {
        json!({
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": self.base,
            "revision": self.revision,
            "r": self.rank,
            "lora_alpha": self.alpha,
            "lora_dropout": self.dropout,
            "target_modules": self.target_modules,
            "use_rslora": self.rank_stabilized,
            "fan_in_fan_out": transposed,
            "bias": "none",
            "inference_mode": true,
        })
    }
}

fn text(object: &Map<String, Value>, key: &str) -> Option<String> {
    object.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn flag(object: &Map<String, Value>, key: &str) -> Result<bool, String> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => Err(format!("key `{key}`: expected true or false, got {other}")),
    }
}

fn names(targets: Option<&Value>) -> Vec<String> {
    let list = targets.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn positive<'a>(object: &'a Map<String, Value>, key: &str) -> Result<&'a Value, String> {
    let value = object.get(key).ok_or_else(|| format!("key `{key}`: missing"))?;
    let is_positive = value.as_f64().is_some_and(|number| number > 0.0);
    is_positive.then_some(value).ok_or_else(|| format!("key `{key}`: expected a number above 0, got {value}"))
}

/// Refuses what is known to be different, and what is not known at all unless it is switched off.
fn refuse_unsupported(object: &Map<String, Value>) -> Result<(), String> {
    const READ: &[&str] = &[
        "base_model_name_or_path",
        "bias",
        "init_lora_weights",
        "lora_alpha",
        "lora_dropout",
        "peft_type",
        "r",
        "target_modules",
        "use_rslora",
    ];
    for (key, value) in object.iter().filter(|(_, value)| !is_off(value)) {
        if let Some((_, what)) = UNSUPPORTED.iter().find(|(name, _)| name == key) {
            return Err(format!("key `{key}`: {what} is not supported"));
        }
        if !READ.contains(&key.as_str()) && !IGNORED.contains(&key.as_str()) {
            return Err(format!("key `{key}`: {value} is not understood"));
        }
    }
    match object.get("bias").and_then(Value::as_str) {
        None | Some("none") => {}
        Some(bias) => return Err(format!("key `bias`: trained biases (`{bias}`) are not supported")),
    }
    match object.get("init_lora_weights").and_then(Value::as_str) {
        Some(way) if !INITIALISATIONS.contains(&way) => {
            Err(format!("key `init_lora_weights`: `{way}` changes the base, which is not supported"))
        }
        _ => Ok(()),
    }
}

/// Returns true if a value switches a key off: null, false, or empty.
fn is_off(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) | Value::Number(_) => false,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
    }
}
