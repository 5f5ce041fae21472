#!/usr/bin/env python3
"""The established way to audit: PyTorch and transformers on the same checkpoint and texts.

    python peer.py MODEL_DIR TEXTS.jsonl [--mode per-text|batched] [--dtype f32|medium|bf16] [--device cpu|cuda] [--scores OUT.jsonl]

per-text   one forward pass per text, statistics from the complete logits: the method of the reference implementations of Min-K%++
medium     is f32 with torch.set_float32_matmul_precision("medium"): products in bf16 where the processor has an instruction for them,
           in TF32 on a GPU
batched    right-padded batches of 32 of similar lengths: the best that a careful user achieves without writing kernels

Prints one JSON line with the rate of a pass over all texts, after a warm-up pass. Needs torch, transformers, numpy.
"""
import argparse, json, time, zlib

import numpy as np
import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

BATCH = 32


def statistics(logits, ids):
    """Converts logits [.., n, V] and ids [.., n] to the log-probability and z score of each id."""
    log_probs = torch.log_softmax(logits.float(), dim=-1)
    probs = log_probs.exp()
    lp = log_probs.gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    mu = (probs * log_probs).sum(-1)
    variance = (probs * log_probs.square()).sum(-1) - mu.square()
    return lp.cpu().numpy(), ((lp - mu) / variance.clamp_min(1e-8).sqrt()).cpu().numpy()


def scores(text, lp, z):
    lowest = lambda values: float(np.sort(values)[: max(1, int(len(values) * 0.2))].mean())
    mean = float(lp.mean())
    return {"loss": mean, "zlib": mean / len(zlib.compress(text.encode())), "min_k(k=0.2)": lowest(lp), "min_k_plus_plus(k=0.2)": lowest(z)}


@torch.no_grad()
def score_batch(model, tokenizer, texts):
    rows = [tokenizer.encode(text) for text in texts]
    longest = max(map(len, rows))
    ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows], device=model.device)
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows], device=model.device)
    lp, z = statistics(model(ids, attention_mask=mask, use_cache=False).logits[:, :-1], ids[:, 1:])
    return [(scores(t, lp[i, : len(r) - 1], z[i, : len(r) - 1]), len(r)) for i, (t, r) in enumerate(zip(texts, rows))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("texts")
    parser.add_argument("--mode", choices=["per-text", "batched"], default="per-text")
    parser.add_argument("--dtype", choices=["f32", "medium", "bf16"], default="f32")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--scores")
    arguments = parser.parse_args()
    torch.set_float32_matmul_precision("medium" if arguments.dtype == "medium" else "highest")
    dtype = torch.bfloat16 if arguments.dtype == "bf16" else torch.float32
    model = AutoModelForCausalLM.from_pretrained(arguments.model, dtype=dtype).to(arguments.device).eval()
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=f"{arguments.model}/tokenizer.json")
    with open(arguments.texts) as file:
        texts = [json.loads(line)["text"] for line in file]
    step = 1 if arguments.mode == "per-text" else BATCH
    # Texts of similar lengths need the least padding; the results are restored to the order of the texts.
    order = sorted(range(len(texts)), key=lambda index: len(texts[index])) if step > 1 else list(range(len(texts)))
    for _ in ("warm-up", "timed"):
        start, results = time.perf_counter(), [None] * len(texts)
        for first in range(0, len(texts), step):
            chosen = order[first : first + step]
            for place, result in zip(chosen, score_batch(model, tokenizer, [texts[place] for place in chosen])):
                results[place] = result
        seconds = time.perf_counter() - start
    if arguments.scores:
        with open(arguments.scores, "w") as file:
            file.writelines(json.dumps(s) + "\n" for s, _ in results)
    tokens = sum(n for _, n in results)
    print(json.dumps({"mode": arguments.mode, "texts_per_s": len(texts) / seconds, "tokens_per_s": tokens / seconds, "threads": torch.get_num_threads()}))


if __name__ == "__main__":
    main()
