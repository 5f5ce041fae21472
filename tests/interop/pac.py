#!/usr/bin/env python3
"""Scores of `pac` by transformers and numpy, which tests/it/goldens/pac.rs compares: tests/fixtures/pac.json.

    python tests/interop/pac.py > tests/fixtures/pac.json      # torch 2.15, transformers 5.23, numpy 2

The copies come from the draws of docs/draws.md, whose code this runs; distances are those of the authors' code: the mean of the sorted
values' two ends. Their score is d(x) - mean d(copies), which members have lower; here it is negated.
"""
import json, pathlib, re, sys
import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/fixtures/goldens/gptneox-parallel"
exec(re.search(r"```python\n(.*?)```", (ROOT / "docs/draws.md").read_text(), re.S).group(1))
model = AutoModelForCausalLM.from_pretrained(GOLDEN).float().eval()
tokenizer = Tokenizer.from_file(str(GOLDEN / "tokenizer.json"))


def swapped(text, swaps, copies, seed):
    words = text.split(" ")
    draws = stream(seed, "swapped words " + text)
    made = []
    for _ in range(copies):
        order = list(words)
        for _ in range(max(1, int(swaps * len(words)))):
            i = below(draws, len(words))
            j = below(draws, len(words) - 1)
            j += j >= i
            order[i], order[j] = order[j], order[i]
        made.append(" ".join(order))
    return made


def distance(text, low, high):
    ids = tokenizer.encode(text).ids
    with torch.no_grad():
        log_probs = torch.log_softmax(model(torch.tensor([ids])).logits[0, :-1].double(), -1)
    values = np.sort([log_probs[place, token].item() for place, token in enumerate(ids[1:])])
    return values[-max(1, int(len(values) * high)):].mean() - values[:max(1, int(len(values) * low))].mean()


SETTINGS = [{"low": 0.3, "high": 0.05, "swaps": 0.3, "copies": 5, "seed": 0},
            {"low": 0.2, "high": 0.5, "swaps": 0.1, "copies": 3, "seed": 9}]
TEXTS = ["The brass clock struck nine in Fallowfield.", "A red kite circled over the quarry at noon.",
         "one two", "Two  spaces, a caf\u00e9\nand a line feed are kept."]
cases = []
for settings in SETTINGS:
    for text in TEXTS:
        copies = swapped(text, settings["swaps"], settings["copies"], settings["seed"])
        low, high = settings["low"], settings["high"]
        score = np.mean([distance(copy, low, high) for copy in copies]) - distance(text, low, high)
        cases.append({"settings": settings, "text": text, "copies": copies, "score": round(float(score), 9)})
json.dump(cases, sys.stdout, ensure_ascii=False, indent=1)
print()
