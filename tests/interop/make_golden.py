#!/usr/bin/env python3
"""How the golden of Phi 3 was made, and how one for another family can be: a tiny random model, its statistics by transformers.

    python tests/interop/make_golden.py OUT_DIR      # torch 2.15, transformers 5.23, tokenizers 0.23

Texts and tokenizer are those of the golden `llama-gqa`. Logits are f32, everything after them float64. Both spellings of the
configuration must load and give the same logits.
"""
import json, pathlib, shutil, sys, tempfile
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, Phi3Config, Phi3ForCausalLM

SOURCE = pathlib.Path(__file__).resolve().parents[1] / "fixtures/goldens/llama-gqa"
CONTEXT = 128
out = pathlib.Path(sys.argv[1])
torch.manual_seed(3)
rope = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
model = Phi3ForCausalLM(Phi3Config(
    vocab_size=520, hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
    max_position_embeddings=CONTEXT, original_max_position_embeddings=CONTEXT, sliding_window=24, rms_norm_eps=1e-5, bos_token_id=1,
    eos_token_id=2, pad_token_id=None, tie_word_embeddings=False, partial_rotary_factor=0.5, rope_parameters=rope)).float().eval()
for parameter in model.parameters():
    torch.nn.init.normal_(parameter, 0, 0.25) if parameter.dim() > 1 else torch.nn.init.uniform_(parameter, 0.6, 1.4)
model.save_pretrained(out)
(out / "generation_config.json").unlink(missing_ok=True)

# What save_pretrained writes is the spelling of transformers 5; the Hub's holds the same under its own keys.
new = json.loads((out / "config.json").read_text())
old = {key: value for key, value in new.items() if key not in ("rope_parameters", "dtype")}
old |= {"rope_theta": rope["rope_theta"], "rope_scaling": None, "partial_rotary_factor": rope["partial_rotary_factor"],
        "torch_dtype": new["dtype"], "transformers_version": "4.40.1", "auto_map": {"AutoConfig": "configuration_phi3.Phi3Config"}}
(out / "config.alt.json").write_text(json.dumps(new, indent=1))
(out / "config.json").write_text(json.dumps(old, indent=1))
for name in ("tokenizer.json", "tokenizer_config.json"):
    shutil.copyfile(SOURCE / name, out / name)
tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))


def statistics(ids):
    """log p of the token that came, and over the vocabulary its mean, deviation and maximum, at every position."""
    log_probs = torch.log_softmax(model(torch.tensor([ids])).logits[0, :-1].float().double(), -1)
    probs = log_probs.exp()
    mu = (probs * log_probs).sum(-1)
    columns = {"logp": log_probs.gather(-1, torch.tensor(ids[1:])[:, None])[:, 0], "mu": mu,
               "sigma": ((probs * log_probs**2).sum(-1) - mu**2).clamp_min(0).sqrt(), "top1": log_probs.max(-1).values}
    return {name: [round(value, 9) for value in column.tolist()] for name, column in columns.items()}


def entry(ids):
    scored = max(0, len(ids) - 1)
    if scored == 0:
        return {"T": 0, "tokens": {"logp": [], "mu": [], "sigma": [], "top1": []}, "scores": None}
    tokens = statistics(ids)
    return {"T": scored, "tokens": tokens, "scores": {"loss": sum(tokens["logp"]) / scored}}


texts = [(text["name"], text["text"]) for text in json.loads((SOURCE / "expected.json").read_text())["texts"]]
texts += [(f"counting_{k}", " ".join(str(i * k) for i in range(20, 20 + n))) for k, n in ((3, 14), (7, 12), (11, 10))]
expected = []
with torch.no_grad():
    for name, text in texts:
        ids = tokenizer.encode(text).ids
        whole = entry(ids) if len(ids) <= CONTEXT else {
            "T": len(ids) - 1, "tokens": None, "scores": None, "truncated": entry(ids[:CONTEXT])}
        expected.append({"name": name, "text": text, "ids": ids} | whole)
    for spelling in (old, new):
        with tempfile.TemporaryDirectory() as directory:
            directory = pathlib.Path(directory)
            shutil.copyfile(out / "model.safetensors", directory / "model.safetensors")
            (directory / "config.json").write_text(json.dumps({k: v for k, v in spelling.items() if k != "auto_map"}))
            again = AutoModelForCausalLM.from_pretrained(directory).eval()
            ids = torch.tensor([expected[1]["ids"]])
            assert torch.equal(again(ids).logits, model(ids).logits)
document = {"arch": "phi3", "model_type": "phi3", "context": CONTEXT, "weights_dtype": "float32",
            "reference": "transformers 5.23.0, torch 2.15.0, f32 logits, then float64", "texts": expected}
(out / "expected.json").write_text(json.dumps(document, ensure_ascii=False))
