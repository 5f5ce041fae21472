#!/usr/bin/env python3
"""How the GGUF files of `tests/fixtures/gguf` were made: tiny random models, written by Python's `gguf`, scored by transformers.

    python tests/interop/make_gguf.py OUT_DIR      # torch 2.15, transformers 5.24, tokenizers 0.23, gguf 0.19

A model of each architecture is stored in Q8_0 or F16, with the vocabulary of the golden of its family; `mixed.gguf` has a
tensor of every type. Names come from the tensor map of `gguf`, and the order of rows from llama.cpp's `convert_hf_to_gguf.py`.
`gguf` writes blocks of some types only; of the others the script draws random ones. transformers scores with the values that
`gguf` reads back, so `expected.json` has nothing that this program computes. `blocks.safetensors` has blocks of every type
with the values that `gguf` gives them.
"""
import json, pathlib, sys
import gguf, numpy as np, torch
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize, quantize
from safetensors.numpy import save_file
from tokenizers import Tokenizer
from transformers import (Gemma2Config, Gemma2ForCausalLM, GPT2Config, GPT2LMHeadModel, GPTNeoXConfig, GPTNeoXForCausalLM,
                          LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, Phi3Config, Phi3ForCausalLM,
                          Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM)

GOLDENS = pathlib.Path(__file__).resolve().parents[1] / "fixtures/goldens"
CONTEXT = 96
TEXTS = [
    "The cat sat on the mat.", " It was the best of times, it was the worst of times.", "l'\u00e9t\u00e9 \u00e0 Paris, e\u0301t\u00e9",
    "In 1984, 12345 of them said:\n\n  \"I'll go, they've won't\"\t(really).", "\u8a9e\u1f600 \U0001f600 end", "x", "<s>Hello</s> <|endoftext|>there",
    "Two  spaces, three   spaces, and a newline\r\nat the end \n", "THE QUICK BROWN FOX'S JUMP: 3.14159, 007 & co.",
]
out = pathlib.Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
random = np.random.default_rng(11)


def permuted(weight, heads):
    """The rows of LLaMA's queries or keys as llama.cpp rotates them: neighbours instead of halves."""
    rows = weight.shape[0]
    return weight.reshape(heads, 2, rows // heads // 2, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def unpermuted(weight, heads):
    rows = weight.shape[0]
    return weight.reshape(heads, rows // heads // 2, 2, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def by_part(weight, heads):
    """GPT-NeoX stores queries, keys and values head by head."""
    return weight.reshape(heads, 3, -1, *weight.shape[1:]).swapaxes(0, 1).reshape(weight.shape)


def by_head(weight, heads):
    return weight.reshape(3, heads, -1, *weight.shape[1:]).swapaxes(0, 1).reshape(weight.shape)


def transforms(arch, config, name):
    """What the converter does to a tensor, and its inverse."""
    same = (lambda w: w, lambda w: w)
    if arch == "llama" and name.endswith(("q_proj.weight", "k_proj.weight")):
        heads = config.num_attention_heads if "q_proj" in name else config.num_key_value_heads
        return lambda w: permuted(w, heads), lambda w: unpermuted(w, heads)
    if arch == "gptneox" and "query_key_value" in name:
        return lambda w: by_part(w, config.num_attention_heads), lambda w: by_head(w, config.num_attention_heads)
    if arch == "gpt2" and name.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")):
        return lambda w: w.T, lambda w: w.T
    if arch == "gemma2" and name.endswith("norm.weight"):
        return lambda w: w + 1, lambda w: w - 1
    return same


def random_blocks(kind, rows, columns):
    """Blocks of a type with random contents, but scales that make weights of a usual size."""
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (rows * columns // elements, size), dtype=np.uint8)
    scales = {Type.Q2_K: [80, 82], Type.Q3_K: [108], Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208], Type.IQ4_XS: [0]}
    largest = {Type.Q2_K: .005, Type.Q3_K: .001, Type.Q4_K: .0002, Type.Q5_K: .0001, Type.Q6_K: .00005, Type.IQ4_XS: .00005}
    for at in scales.get(kind, [0]):
        scale = random.uniform(-1, 1, len(blocks)) * largest.get(kind, .002)
        blocks[:, at:at + 2] = scale.astype(np.float16)[:, None].view(np.uint8)
    return blocks.reshape(rows, columns // elements * size)


def stored(weight, kind):
    """The bytes of a tensor in a type."""
    if kind == Type.F32:
        return weight.astype(np.float32)
    if kind == Type.F16:
        return weight.astype(np.float16)
    try:
        return quantize(weight.astype(np.float32), kind)
    except NotImplementedError:
        return random_blocks(kind, *weight.shape)


def values(data, kind):
    return data.astype(np.float32) if kind in (Type.F32, Type.F16) else dequantize(data, kind)


def add_metadata(writer, arch, config, extra):
    get = lambda *names: next((getattr(config, name) for name in names if getattr(config, name, None) is not None), None)
    writer.add_name("fixture")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_head_count(config.num_attention_heads)
    writer.add_feed_forward_length(get("intermediate_size", "n_inner"))
    if arch in ("gpt2", "gptneox"):
        writer.add_layer_norm_eps(get("layer_norm_epsilon", "layer_norm_eps"))
    else:
        writer.add_head_count_kv(config.num_key_value_heads)
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
        writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
        writer.add_vocab_size(config.vocab_size)
    for add, value in extra.items():
        getattr(writer, f"add_{add}")(value)


def add_tokenizer(writer, golden, model, pre, vocab, **extra):
    """The vocabulary of a golden, as llama.cpp's converter writes it."""
    document = json.loads((GOLDENS / golden / "tokenizer.json").read_text())
    ids = dict(document["model"]["vocab"])
    added = {token["content"]: token["id"] for token in document["added_tokens"]}
    ids |= added
    by_id = {number: token for token, number in ids.items()}
    tokens = [by_id.get(i, f"[PAD{i}]") for i in range(vocab)]
    kind = lambda i, token: (gguf.TokenType.UNUSED if i not in by_id else gguf.TokenType.UNKNOWN if token == "<unk>"
                             else gguf.TokenType.CONTROL if token in added
                             else gguf.TokenType.BYTE if model == "llama" and token.startswith("<0x") else gguf.TokenType.NORMAL)
    writer.add_tokenizer_model(model)
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([kind(i, token) for i, token in enumerate(tokens)])
    if model == "llama":
        writer.add_token_scores([0.0 if token in added or token.startswith("<0x") else -float(i) for i, token in enumerate(tokens)])
    else:
        pairs = document["model"]["merges"]
        writer.add_token_merges([pair if isinstance(pair, str) else " ".join(pair) for pair in pairs])
    for name, value in extra.items():
        getattr(writer, f"add_{name}")(value)


def logps(model, ids):
    log_probs = torch.log_softmax(model(torch.tensor([ids])).logits[0, :-1].double(), -1)
    return [round(value, 9) for value in log_probs.gather(-1, torch.tensor(ids[1:])[:, None])[:, 0].tolist()]


def write(name, arch, model, golden, tokenizer, kinds=None, extra=None, rope_freqs=None, file_type=gguf.LlamaFileType.MOSTLY_Q8_0):
    """Writes a model, and gives its entry of `expected.json`."""
    config = model.eval().config
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, 0, (2 / config.hidden_size)**0.5) if parameter.dim() > 1 else torch.nn.init.uniform_(parameter, 0.6, 1.4)
    names = gguf.get_tensor_name_map(next(key for key, value in gguf.MODEL_ARCH_NAMES.items() if value == arch), config.num_hidden_layers)
    writer = gguf.GGUFWriter(out / f"{name}.gguf", arch)
    add_metadata(writer, arch, config, extra or {})
    writer.add_file_type(file_type)
    writer.add_quantization_version(2)
    add_tokenizer(writer, golden, vocab=config.vocab_size, **tokenizer)
    state, kinds = model.state_dict(), iter(kinds or [])
    usual = Type.F16 if file_type == gguf.LlamaFileType.MOSTLY_F16 else Type.Q8_0
    if rope_freqs is not None:
        writer.add_tensor("rope_freqs.weight", np.array(rope_freqs, dtype=np.float32))
    for key, tensor in state.items():
        if key == "lm_head.weight" and config.tie_word_embeddings or key.endswith((".attn.bias", ".masked_bias", "inv_freq")):
            continue
        forward, back = transforms(arch, config, key)
        weight = np.ascontiguousarray(forward(tensor.numpy()))
        kind = Type.F32 if weight.ndim < 2 else next(kinds, usual)
        data = stored(weight, kind)
        writer.add_tensor(names.get_name(key, try_suffixes=(".weight", ".bias")), data, raw_dtype=kind)
        state[key].copy_(torch.from_numpy(np.ascontiguousarray(back(values(data, kind).reshape(weight.shape)))))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    encoder = Tokenizer.from_file(str(GOLDENS / golden / "tokenizer.json"))
    entries = []
    for text in TEXTS:
        ids = encoder.encode(text).ids[:CONTEXT]
        entries.append({"text": text, "ids": ids, "logp": logps(model, ids) if len(ids) > 1 else []})
    return {"golden": golden, "texts": entries}


SIZES = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=CONTEXT, rms_norm_eps=1e-5, pad_token_id=None, tie_word_embeddings=False)
SP = dict(model="llama", pre="default", bos_token_id=1, eos_token_id=2, unk_token_id=0, add_bos_token=True, add_eos_token=False)
QWEN = dict(model="gpt2", pre="qwen2", eos_token_id=390, bos_token_id=390, add_bos_token=False)
LLAMA3 = dict(model="gpt2", pre="llama-bpe", bos_token_id=400, eos_token_id=401, eot_token_id=402)
rope = lambda theta, **more: dict(rope_parameters={"rope_type": "default", "rope_theta": theta} | more)


def llama3_divisors(width, theta, factor, low, high, context):
    """The converter's: what the frequencies of LLaMA 3.1 are divided by."""
    frequencies = 1.0 / theta ** (torch.arange(0, width, 2, dtype=torch.float32) / width)
    divisors = []
    for frequency in frequencies:
        wavelength = 2 * np.pi / frequency
        smooth = (context / wavelength - low) / (high - low)
        divisors.append(1 if wavelength < context / high else factor if wavelength > context / low
                        else 1 / ((1 - smooth) / factor + smooth))
    return [float(divisor) for divisor in divisors]


torch.manual_seed(5)
torch.set_grad_enabled(False)
llama3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=24)
window = dict(sliding_window=16)
models = {
    "llama": lambda: write("llama", "llama", LlamaForCausalLM(LlamaConfig(vocab_size=520, **SIZES, **rope(10000.0))), "llama-gqa", SP,
                           extra={"rope_dimension_count": 8}, file_type=gguf.LlamaFileType.MOSTLY_F16),
    "llama3": lambda: write("llama3", "llama", LlamaForCausalLM(LlamaConfig(vocab_size=403, **SIZES, **rope(10000.0, **llama3))),
                            "llama-linear-rope", LLAMA3, rope_freqs=llama3_divisors(8, 10000.0, 8.0, 1.0, 4.0, 24)),
    "llama-linear": lambda: write(
        "llama-linear", "llama", LlamaForCausalLM(LlamaConfig(vocab_size=520, **SIZES, **rope(500.0, rope_type="linear", factor=4.0))),
        "llama-gqa", SP, extra={"rope_scaling_type": gguf.RopeScalingType.LINEAR, "rope_scaling_factor": 4.0}),
    "mistral": lambda: write("mistral", "llama", MistralForCausalLM(MistralConfig(vocab_size=520, **SIZES, **window, **rope(10000.0))),
                             "mistral", SP, extra=window),
    "qwen2": lambda: write("qwen2", "qwen2", Qwen2ForCausalLM(Qwen2Config(
        vocab_size=396, **SIZES | dict(tie_word_embeddings=True), **rope(1e6))), "qwen2", QWEN),
    "qwen3": lambda: write("qwen3", "qwen3", Qwen3ForCausalLM(Qwen3Config(vocab_size=396, head_dim=16, **SIZES, **rope(1e6))), "qwen3",
                           QWEN, extra={"key_length": 16, "value_length": 16}),
    "gemma2": lambda: write("gemma2", "gemma2", Gemma2ForCausalLM(Gemma2Config(
        vocab_size=403, head_dim=16, query_pre_attn_scalar=16, attn_implementation="eager", **window,
        **SIZES | dict(tie_word_embeddings=True), **rope(10000.0))), "gemma2", LLAMA3,
        extra={"key_length": 16, "value_length": 16, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0} | window),
    "phi3": lambda: write("phi3", "phi3", Phi3ForCausalLM(Phi3Config(
        vocab_size=520, original_max_position_embeddings=CONTEXT, **window, **SIZES, partial_rotary_factor=0.5,
        **rope(10000.0, partial_rotary_factor=0.5))), "phi3", SP, extra={"rope_dimension_count": 4} | window),
    "gpt2": lambda: write("gpt2", "gpt2", GPT2LMHeadModel(GPT2Config(
        vocab_size=401, n_embd=32, n_head=4, n_layer=2, n_inner=64, n_positions=CONTEXT, pad_token_id=None)), "gpt2",
        dict(model="gpt2", pre="gpt-2", bos_token_id=400, eos_token_id=400)),
    "gptneox": lambda: write("gptneox", "gptneox", GPTNeoXForCausalLM(GPTNeoXConfig(
        vocab_size=432, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=CONTEXT,
        pad_token_id=None, rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5})),
        "gptneox-parallel", dict(model="gpt2", pre="olmo", bos_token_id=0, eos_token_id=0),
        extra={"rope_dimension_count": 4, "parallel_residual": True}),
    # Rows of 256 elements, but for attention's output and that of the MLP.
    "mixed": lambda: write("mixed", "llama", LlamaForCausalLM(LlamaConfig(
        vocab_size=520, head_dim=16, **SIZES | dict(hidden_size=256, intermediate_size=32, num_key_value_heads=1, num_hidden_layers=3,
                                                    tie_word_embeddings=True), **rope(10000.0))), "llama-gqa", SP,
        # The embedding, then queries, keys, values and output of attention, gate, factor and output of the MLP of each layer.
        kinds=[Type.Q4_K, Type.Q5_K, Type.Q6_K, Type.Q2_K, Type.Q8_0, Type.Q3_K, Type.IQ4_XS, Type.Q4_0,
               Type.BF16, Type.IQ4_NL, Type.F16, Type.Q5_0, Type.IQ4_XS, Type.Q4_1, Type.Q5_1,
               Type.Q4_K, Type.Q4_K, Type.Q6_K, Type.IQ4_NL, Type.Q5_K, Type.Q8_0, Type.Q4_1],
        extra={"key_length": 16, "value_length": 16}, file_type=gguf.LlamaFileType.MOSTLY_Q4_K_M),
}
expected = {name: make() for name, make in models.items()}
reference = f"transformers {__import__('transformers').__version__}, torch {torch.__version__}, f32 logits, then float64"
(out / "expected.json").write_text(json.dumps({"reference": reference, "models": expected}, ensure_ascii=False))

blocks = {}
for kind in (Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0, Type.Q2_K, Type.Q3_K, Type.Q4_K, Type.Q5_K, Type.Q6_K, Type.IQ4_NL,
             Type.IQ4_XS):
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    data = random_blocks(kind, 4, elements)
    if kind in (Type.Q4_1, Type.Q5_1):
        data[:, 2:4] = random.uniform(-1, 1, 4).astype(np.float16)[:, None].view(np.uint8)
    blocks |= {f"{kind.name}.blocks": data, f"{kind.name}.values": dequantize(data, kind)}
save_file(blocks, out / "blocks.safetensors")
