use super::*;
use serde_json::{Value, json};

fn config(file: &Writer) -> Result<Value, String> {
    let bytes = file.bytes();
    let config = GgufFile::read(&bytes).and_then(|file| file.config());
    config.map(Value::Object).map_err(|error| error.to_string())
}

fn fault(file: &Writer, says: &str) {
    let said = config(file).unwrap_err();
    assert!(said.contains(says), "expected {says:?} in: {said}");
}

#[test]
fn metadata_become_the_configuration_of_transformers() {
    let file = Writer::llama().with(number("llama.rope.freq_base", 5e5)).with(count("tokenizer.ggml.eos_token_id", 1));
    let expected = json!({
        "model_type": "llama", "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 64,
        "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 5e5, "vocab_size": 2, "tie_word_embeddings": true,
        "attention_bias": false, "mlp_bias": false, "eos_token_id": [1],
    });
    assert_eq!(config(&file).unwrap(), expected);
    let mistral = file.with(count("llama.attention.sliding_window", 16));
    let read = config(&mistral).unwrap();
    assert_eq!((&read["model_type"], &read["sliding_window"]), (&json!("mistral"), &json!(16)));
}

#[test]
fn positions_are_scaled_as_the_file_says() {
    let kind = |name: &str| Writer::llama().with(string("llama.rope.scaling.type", name));
    let factor = |file: Writer| file.with(number("llama.rope.scaling.factor", 4.0));
    assert_eq!(
        config(&factor(kind("linear"))).unwrap()["rope_scaling"],
        json!({ "rope_type": "linear", "factor": 4.0 })
    );
    assert_eq!(config(&factor(kind("none"))).unwrap().get("rope_scaling"), None);
    fault(&kind("linear"), "metadata key `llama.rope.scaling.factor`: missing");
    fault(&factor(kind("yarn")), "metadata key `llama.rope.scaling.type`: `yarn` is not supported");
    fault(&Writer::llama().with(count("llama.rope.dimension_count", 4)), "4 differs from the width of a head, 8");
}

#[test]
fn what_is_not_understood_is_refused_by_its_key() {
    fault(&Writer::llama().with(count("llama.expert_count", 8)), "metadata key `llama.expert_count`: not supported");
    fault(&Writer::llama().with(count("llama.attention.value_length", 9)), "`llama.attention.value_length`: differs");
    fault(&Writer::llama().with(flag("llama.attention.causal", false)), "`llama.attention.causal`: only true");
    assert!(config(&Writer::llama().with(count("mradermacher.quantize_version", 2))).is_ok(), "of another program");
    let mut lacking = Writer::llama();
    lacking.metadata.remove(2);
    fault(&lacking, "metadata key `llama.block_count`: missing");
    lacking.metadata[0] = string("general.architecture", "mamba");
    fault(&lacking, "`mamba` is not supported; supported: llama, qwen2, qwen3, gemma2, phi3, gpt2, gptneox");
    lacking.metadata.remove(0);
    fault(&lacking, "metadata key `general.architecture`: missing");
    let list = array("llama.attention.head_count", 4, &[1u32.to_le_bytes().to_vec()]);
    let mut listed = Writer::llama();
    listed.metadata[3] = list;
    fault(&listed, "`llama.attention.head_count`: expected a number, found an array of 1 elements");
}

/// A byte-level vocabulary of a few tokens.
fn byte_level(pre: &str) -> Writer {
    Writer::llama()
        .with(string("tokenizer.ggml.model", "gpt2"))
        .with(string("tokenizer.ggml.pre", pre))
        .with(strings("tokenizer.ggml.tokens", &["a", "b", "ab", "<s>"]))
        .with(array("tokenizer.ggml.token_type", 5, &[1, 1, 1, 3].map(|kind: i32| kind.to_le_bytes().to_vec())))
        .with(count("tokenizer.ggml.bos_token_id", 3))
}

#[test]
fn a_tokenizer_that_is_not_stated_exactly_is_refused() {
    let refused = |file: Writer, says: &str| {
        let said = refusal(&file.bytes());
        assert!(said.contains(says), "expected {says:?} in: {said}");
    };
    let merges = |merges: &[&str]| byte_level("gpt-2").with(strings("tokenizer.ggml.merges", merges));
    refused(
        Writer::llama(),
        "`tokenizer.ggml.model`: missing; name the tokenizer of the original model by the setting",
    );
    refused(Writer::llama().with(string("tokenizer.ggml.model", "bert")), "`tokenizer.ggml.tokens`: missing");
    refused(byte_level("gpt-2"), "`tokenizer.ggml.merges`: missing");
    refused(byte_level("tekken"), "`tekken` is not supported; supported: gpt-2, phi-2, olmo");
    refused(merges(&["a b", "ab"]), "\"ab\" is not two tokens");
    refused(merges(&["a c"]), "\"a c\" has a part that is no token");
    refused(merges(&["b a"]), "\"b a\" has a part that is no token");
    refused(merges(&["a b"]).with(count("tokenizer.ggml.eos_token_id", 4)), "there is no token 4; the file has 4");
    refused(merges(&["a b"]).with(flag("tokenizer.ggml.add_sep_token", true)), "only false is supported");
    refused(
        merges(&["a b"]).with(flag("tokenizer.ggml.add_eos_token", true)),
        "`tokenizer.ggml.eos_token_id`: missing",
    );
    let tokens = ["a", "a"];
    let twice =
        Writer::llama().with(string("tokenizer.ggml.model", "llama")).with(strings("tokenizer.ggml.tokens", &tokens));
    refused(twice, "\"a\" is listed twice, as 0 and 1");
}

#[test]
fn tokens_come_before_and_after_a_text_where_the_file_says_so() {
    let merges = strings("tokenizer.ggml.merges", &["a b"]);
    let single = |file: Writer| {
        let bytes = file.with(merges.clone()).bytes();
        let tokenizer = GgufFile::read(&bytes).unwrap().tokenizer().unwrap();
        tokenizer["post_processor"].to_string()
    };
    assert!(!single(byte_level("gpt-2")).contains("<s>"));
    assert!(single(byte_level("llama-bpe")).contains("<s>"), "LLaMA 3 adds one where the file does not say");
    assert!(single(byte_level("gpt-2").with(flag("tokenizer.ggml.add_bos_token", true))).contains("<s>"));
    assert!(!single(byte_level("llama-bpe").with(flag("tokenizer.ggml.add_bos_token", false))).contains("<s>"));
}

/// A vocabulary of SentencePiece whose tokens make up each other in many ways.
#[test]
fn derived_merges_are_bounded_by_the_tokens() {
    let bytes: Vec<String> = (0..=255).map(|byte: u8| format!("<0x{byte:02X}>")).collect();
    let runs: Vec<String> = (1..=400).map(|length| "a".repeat(length)).collect();
    let tokens: Vec<&str> = bytes.iter().chain(&runs).map(String::as_str).collect();
    let scores: Vec<Vec<u8>> = (0..tokens.len()).map(|id| (-(id as f32)).to_le_bytes().to_vec()).collect();
    let file = Writer::llama()
        .with(string("tokenizer.ggml.model", "llama"))
        .with(strings("tokenizer.ggml.tokens", &tokens))
        .with(array("tokenizer.ggml.scores", 6, &scores));
    assert!(refusal(&file.bytes()).contains("make up each other in too many ways"));
}
