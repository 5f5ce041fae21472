#!/usr/bin/env python3
"""Creates the checkpoints that run.py measures, with random weights: they are as fast as the real ones, but their scores have no meaning.

    python make.py OUT_DIR TOKENIZER.json [NAME ...]

TOKENIZER.json is the tokenizer of a Pythia model, or another with up to 50,280 ids. Needs torch, transformers and safetensors.
"""
import pathlib, shutil, sys

import torch
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, LlamaConfig, LlamaForCausalLM, MambaConfig, MambaForCausalLM

VOCAB = 50304


def pythia(hidden, layers, heads):
    sizes = dict(hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=4 * hidden)
    return GPTNeoXForCausalLM, GPTNeoXConfig(vocab_size=VOCAB, max_position_embeddings=2048, rotary_pct=0.25, use_parallel_residual=True, **sizes)


LLAMA = dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, num_key_value_heads=4, intermediate_size=2048)
SHAPES = {
    "pythia-70m": (*pythia(512, 6, 8), torch.float32),
    "pythia-160m": (*pythia(768, 12, 12), torch.float32),
    "pythia-160m-bf16": (*pythia(768, 12, 12), torch.bfloat16),
    "pythia-410m": (*pythia(1024, 24, 16), torch.float32),
    "pythia-1.4b": (*pythia(2048, 24, 16), torch.bfloat16),
    "pythia-6.9b": (*pythia(4096, 32, 32), torch.bfloat16),
    "llama-160m": (LlamaForCausalLM, LlamaConfig(vocab_size=VOCAB, **LLAMA), torch.float32),
    "mamba-130m": (MambaForCausalLM, MambaConfig(vocab_size=50280, hidden_size=768, num_hidden_layers=24), torch.float32),
}


def main():
    out, tokenizer, names = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:] or SHAPES
    # The largest take minutes on a CPU.
    torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")
    for name in names:
        family, config, dtype = SHAPES[name]
        torch.manual_seed(0)
        family(config).to(dtype).save_pretrained(out / name)
        shutil.copy(tokenizer, out / name / "tokenizer.json")


if __name__ == "__main__":
    main()
