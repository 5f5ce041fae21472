//! How byte-level tokenizers normalize and split texts, by the names that llama.cpp gives them in `tokenizer.ggml.pre`.
//!
//! A GGUF file states the name alone; the rules are those of the `tokenizer.json` that the models of that name were published
//! with. A name is listed if these are known; others are refused.

use serde_json::{Value, json};

/// The rules of one name.
pub struct ByteLevelRules {
    names: &'static [&'static str],
    /// True if texts are normalized to NFC.
    nfc: bool,
    split: Splits,
    /// True if a word that is a token is not made of merges.
    ignore_merges: bool,
    /// Whether a token begins every text where the file does not say.
    pub adds_bos: bool,
}

#[derive(Clone, Copy)]
enum Splits {
    /// By GPT-2's expression, which is that of the library.
    Gpt2,
    /// The same, and every digit apart.
    Gpt2Digits,
    /// By this expression.
    Expression(&'static str),
}

/// Numbers in groups of up to three digits.
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The same with every digit apart.
const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

const GPT2_RULES: ByteLevelRules = ByteLevelRules {
    names: &["gpt-2", "phi-2"],
    nfc: false,
    split: Splits::Gpt2,
    ignore_merges: false,
    adds_bos: false,
};

const RULES: [ByteLevelRules; 5] = [
    GPT2_RULES,
    // OLMo, MPT and Pythia: the tokenizer of GPT-NeoX.
    ByteLevelRules { names: &["olmo", "mpt"], nfc: true, ..GPT2_RULES },
    ByteLevelRules { names: &["smollm"], split: Splits::Gpt2Digits, ..GPT2_RULES },
    ByteLevelRules {
        names: &["llama-bpe", "llama3", "llama-v3"],
        split: Splits::Expression(LLAMA3),
        ignore_merges: true,
        adds_bos: true,
        ..GPT2_RULES
    },
    ByteLevelRules { names: &["qwen2", "deepseek-r1-qwen"], nfc: true, split: Splits::Expression(QWEN2), ..GPT2_RULES },
];

impl ByteLevelRules {
    pub fn find(name: &str) -> Option<&'static Self> {
        RULES.iter().find(|rules| rules.names.contains(&name))
    }

    /// All names, for messages.
    pub fn names() -> String {
        RULES.iter().flat_map(|rules| rules.names).copied().collect::<Vec<_>>().join(", ")
    }

    pub fn normalizer(&self) -> Value {
        if self.nfc { json!({ "type": "NFC" }) } else { Value::Null }
    }

    pub fn ignore_merges(&self) -> bool {
        self.ignore_merges
    }

    pub fn pre_tokenizer(&self) -> Value {
        let byte_level = byte_level(matches!(self.split, Splits::Gpt2 | Splits::Gpt2Digits));
        let first = match self.split {
            Splits::Gpt2 => return byte_level,
            Splits::Gpt2Digits => json!({ "type": "Digits", "individual_digits": true }),
            Splits::Expression(regex) => {
                json!({ "type": "Split", "pattern": { "Regex": regex }, "behavior": "Isolated", "invert": false })
            }
        };
        json!({ "type": "Sequence", "pretokenizers": [first, byte_level] })
    }
}

/// The step that writes bytes as characters, and splits first by GPT-2's expression where `use_regex` is set.
pub fn byte_level(use_regex: bool) -> Value {
    json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": use_regex })
}
