#!/usr/bin/env python3
"""PEFT loads the adapters that `pdr-audit finetune` writes, and gives every token the same log-probability.

    python3 tests/interop/peft_loads_adapter.py [--program target/release/pdr-audit]

Needs torch, transformers and peft; `.ci/peft` installs them. Tunes a few steps on non-members of models/demo/audit.jsonl for a GPT-NeoX
(the demo model), and on the goldens of the other families whose tokenizers transformers reads as we do; scores ten texts under
each adapter. Both compute in f32; the tolerance is that of the goldens, 2e-4. Exits 1 where a token differs by more.
"""
import argparse, json, pathlib, subprocess, sys, tempfile

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDENS = ROOT / "tests/fixtures/goldens"
MODELS = [ROOT / "models/demo", *(GOLDENS / name for name in ("llama-gqa", "opt-pre", "gptj", "gpt_neo", "gpt2"))]
TOLERANCE = 2e-4


def run(program, *arguments, text=""):
    done = subprocess.run([program, *map(str, arguments)], input=text, text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"{arguments}: {done.stderr}")
    return done.stdout


def theirs(model, ids):
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, :-1].double()
    return torch.log_softmax(logits, -1).gather(1, torch.tensor(ids[1:])[:, None])[:, 0].tolist()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=ROOT / "target/release/pdr-audit")
    program = parser.parse_args().program
    samples = [json.loads(line) for line in (ROOT / "models/demo/audit.jsonl").read_text().splitlines()]
    tuning = "\n".join(json.dumps({"text": sample["text"][:120]}) for sample in samples if not sample["label"])
    texts = [sample["text"][:120] for sample in samples[:10]]
    worst = 0.0
    for directory in MODELS:
        with tempfile.TemporaryDirectory() as scratch:
            adapter = pathlib.Path(scratch) / "tuned"
            run(program, "finetune", "-", "--model", directory, "--output", adapter, "--rank", 4, "--learning-rate", 0.01, text=tuning)
            request = ("score", "-", "--model", f"{directory}:tuned", "--adapter", adapter, "--methods", "loss", "--tokens")
            lines = run(program, *request, text="\n".join(json.dumps({"text": text}) for text in texts))
            # The weights are stored in f16 or f32; f32 holds both.
            base = AutoModelForCausalLM.from_pretrained(directory, torch_dtype=torch.float32).eval()
            tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(directory / "tokenizer.json"))
            tuned = PeftModel.from_pretrained(base, adapter).eval()
        largest = change = 0.0
        for text, line in zip(texts, lines.splitlines(), strict=True):
            ids = tokenizer(text)["input_ids"]
            ours = [token["lp"] for token in json.loads(line)["tokens"] if token.get("lp") is not None]
            expected = theirs(tuned, ids)
            with tuned.disable_adapter():
                before = theirs(tuned, ids)
            assert len(ours) == len(expected), (text, len(ours), len(expected))
            largest = max(largest, *(abs(a - b) for a, b in zip(ours, expected)))
            change = max(change, *(abs(a - b) for a, b in zip(before, expected)))
        print(f"{directory.name:12} largest difference {largest:.1e}; the adapter changes tokens by up to {change:.2f}")
        worst = max(worst, largest)
        assert change > 0.01, "the adapter changes nothing"
    print(f"largest difference {worst:.1e}, tolerance {TOLERANCE}")
    return int(worst > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
