#!/usr/bin/env python3
"""Greedy continuations of the goldens by transformers, in f32 on the CPU: `generate(do_sample=False)`.

    python tests/interop/continuations.py tests/fixtures/continuations.json      # torch 2.15, transformers 5.24

For each golden, three beginnings of its texts, and one of these again with a token of its continuation as the one that ends texts.
Kept are continuations without a near tie: where the two largest logits are closer than MARGIN, the last bits of f32 decide.
"""
import json, pathlib, sys, tempfile
import torch
from transformers import AutoModelForCausalLM
from transformers.utils import logging

GOLDENS = pathlib.Path(__file__).resolve().parents[1] / "fixtures/goldens"
GIVEN, WANTED, MARGIN = 24, 40, 1e-3
logging.set_verbosity_error()


def load(directory):
    """The model in f32, from either spelling of its configuration; None for one that is no causal model."""
    with tempfile.TemporaryDirectory() as copy:
        copy = pathlib.Path(copy)
        for path in directory.iterdir():
            if path.suffix in (".safetensors", ".bin") or path.name.endswith(".index.json"):
                (copy / path.name).symlink_to(path)
        (copy / "config.json").write_text((directory / "config.alt.json").read_text())
        return AutoModelForCausalLM.from_pretrained(copy, dtype=torch.float32, trust_remote_code=False).eval()


def continued(model, ids, end):
    output = model.generate(
        torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), do_sample=False, num_beams=1,
        max_new_tokens=WANTED, eos_token_id=end, pad_token_id=0, return_dict_in_generate=True, output_logits=True)
    best = torch.stack(output.logits)[:, 0].topk(2, dim=-1).values
    return output.sequences[0, len(ids):].tolist(), float((best[:, 0] - best[:, 1]).min())


cases = []
with torch.no_grad():
    for directory in sorted(path for path in GOLDENS.iterdir() if path.is_dir() and not path.name.endswith("-mlm")):
        model = load(directory)
        end = json.loads((directory / "config.json").read_text())["eos_token_id"]
        texts = [text["ids"] for text in json.loads((directory / "expected.json").read_text())["texts"]]
        chosen = []
        for ids in (ids[:GIVEN] for ids in texts if len(ids) > GIVEN):
            written, margin = continued(model, ids, end)
            if margin > MARGIN and len(chosen) < 3:
                chosen.append({"golden": directory.name, "ids": ids, "ends": [end], "continuation": written, "ended": written[-1] == end})
        if chosen:
            first = chosen[0]
            end = next((i for i in first["continuation"][5:] if i not in first["continuation"][:5]), None)
            if end is not None:
                written, _ = continued(model, first["ids"], end)
                chosen.append({"golden": directory.name, "ids": first["ids"], "ends": [7, end], "continuation": written, "ended": True})
        print(directory.name, [len(case["continuation"]) for case in chosen], len(texts))
        cases += chosen
pathlib.Path(sys.argv[1]).write_text("[\n" + ",\n".join(map(json.dumps, cases)) + "\n]\n")
