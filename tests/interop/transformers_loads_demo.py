#!/usr/bin/env python3
"""transformers loads the demo models as they ship, and its loss agrees with ours.

    cargo build --release
    python tests/interop/transformers_loads_demo.py          # needs torch and transformers, 6 GB installed: not part of CI

Takes the first ten texts of models/demo/audit.jsonl; the two losses may differ by 1e-3 (both compute in f32 from the same f16 weights).
Exits 1 where they differ by more.
"""
import json, pathlib, subprocess, sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOLERANCE = 1e-3


def main():
    audit = (ROOT / "models/demo/audit.jsonl").read_text().splitlines()[:10]
    worst = 0.0
    for name in ("demo", "demo-reference"):
        model, report = AutoModelForCausalLM.from_pretrained(ROOT / "models" / name, dtype=torch.float32, output_loading_info=True)
        assert not any(report.values()), report
        tokenizer = AutoTokenizer.from_pretrained(ROOT / "models" / name)
        command = [ROOT / "target/release/pdr-audit", "score", "-", "--model", name, "--methods", "loss"]
        out = subprocess.run(command, input="\n".join(audit).encode(), check=True, stdout=subprocess.PIPE).stdout
        print(f"{name}\n{'id':6} {'tokens':>6} {'transformers':>13} {'pdr-audit':>13} {'difference':>11}")
        for line, ours in zip(audit, map(json.loads, out.splitlines()), strict=True):
            sample = json.loads(line)
            ids = tokenizer(sample["text"], return_tensors="pt")["input_ids"]
            with torch.no_grad():
                theirs = -model.eval()(ids, labels=ids).loss.item()
            assert ids.shape[1] - 1 == ours["scored_tokens"], sample["id"]
            difference = abs(theirs - ours["scores"]["loss"])
            worst = max(worst, difference)
            print(f"{sample['id']:6} {ids.shape[1]:6} {theirs:13.6f} {ours['scores']['loss']:13.6f} {difference:11.1e}")
    print(f"largest difference {worst:.1e}, tolerance {TOLERANCE}")
    return int(worst > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
