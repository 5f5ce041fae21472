#!/usr/bin/env python3
"""Runs commands on the GPU and on the CPU, and prints how far their numbers differ: `benches/gpu_commands.py PROGRAM MODELS GOLDENS`

MODELS is the folder `models` of the repository, GOLDENS its `tests/fixtures/goldens`. Everything runs in f32. Exits with 1 where scores differ
by more than 1e-3 of their size plus one, where continuations differ, or where a fine-tune ends with a loss that differs by more than 2 %: the
dropped inputs are the same on both, the order of sums is not. Needs no package.
"""
import json, os, pathlib, re, subprocess, sys, tempfile

PROGRAM, MODELS, GOLDENS = (str(pathlib.Path(path).absolute()) for path in sys.argv[1:4])
SCORES, LOSS = 1e-3, 0.02
METHODS = "loss,zlib,lowercase,min_k,min_k_plus_plus,max_k,gap_k,surp,ref,wbc,ez"


def run(device, directory, *arguments):
    environment = dict(os.environ, PDR_AUDIT__ENGINE__DEVICE=device, PDR_AUDIT__ENGINE__DTYPE="f32", NO_COLOR="1")
    out = subprocess.run([PROGRAM, *arguments], cwd=directory, env=environment, capture_output=True, text=True)
    if out.returncode != 0:
        raise SystemExit(f"{device}: {' '.join(arguments)}: {out.stderr}")
    return out.stdout + out.stderr if "finetune" in arguments else out.stdout


def scores(device, directory, *arguments):
    """The scores of each text, by method."""
    out = run(device, directory, "score", "texts.jsonl", "--format", "ndjson", *arguments)
    return [json.loads(line)["scores"] for line in out.splitlines()]


def difference(one, other):
    """The largest difference of two lists of scores, relative to one plus their size."""
    assert [set(a) for a in one] == [set(b) for b in other] and one, "the same scores"
    return max(abs(a[name] - b[name]) / (1 + abs(b[name])) for a, b in zip(one, other) for name in a)


def main():
    faults = []

    def check(name, value, holds):
        print(f"{name}: {value}{'' if holds else ', which is too much'}")
        if not holds:
            faults.append(name)

    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        lines = pathlib.Path(MODELS, "demo/audit.jsonl").read_text().splitlines()
        (folder / "texts.jsonl").write_text("".join(line + "\n" for line in lines[:200]))
        unseen = [line for line in lines if '"label":0' in line][:64]
        (folder / "unseen.jsonl").write_text("".join(line + "\n" for line in unseen))
        (folder / "models.toml").write_text(
            "".join(f"[[models]]\nid = {json.dumps(name)}\nsource = {json.dumps(source)}\n" + more for name, source, more in [
                ("demo", f"{MODELS}/demo", 'reference = "reference"\n'), ("reference", f"{MODELS}/demo-reference", ""),
                ("bert", f"{GOLDENS}/bert-mlm", ""), ("mamba", f"{GOLDENS}/mamba", "")]))
        models = ["--config", "models.toml"]
        demo = ["--model", "demo"]
        both = lambda *arguments: difference(*(scores(device, folder, *arguments, *models) for device in ("cuda", "cpu")))

        value = both(*demo, "--methods", METHODS, "--decay", "none,linear,exponential", "--alpha", "0.5")
        check("scores of all methods", f"{value:.1e}", value <= SCORES)
        value = both(*demo, "--methods", '[{"name": "neighbor", "generator": {"model": "bert", "count": 5}}]', "--words", "8")
        check("neighbours from a masked model", f"{value:.1e}", value <= SCORES)
        value = both("--methods", "loss,min_k_plus_plus", "--model", "mamba")
        check("scores under Mamba", f"{value:.1e}", value <= SCORES)

        continued = [run(device, folder, "memorization", "texts.jsonl", "--continue", "16", "--prefix", "16", "--suffix", "8", "--map",
                         f"{device}.ndjson", "--format", "json", *demo, *models) for device in ("cuda", "cpu")]
        reports = [json.loads(report) for report in continued]
        texts = [[(text.get("continuation") or {}).get("text") for text in report["texts"]] for report in reports]
        differing = sum(a != b for a, b in zip(*texts))
        check("texts continued otherwise", f"{differing} of {len(texts[1])}", differing == 0 and any(texts[1]))

        losses = []
        for device in ("cuda", "cpu"):
            tuned = run(device, folder, "finetune", "unseen.jsonl", *demo, "--epochs", "2", "--output", device, *models)
            losses.append(float(re.search(r"loss [0-9.]+ to ([0-9.]+)", tuned)[1]))
        value = abs(losses[0] / losses[1] - 1)
        check("final losses of a fine-tune", f"{losses[0]:.4f} and {losses[1]:.4f}", value <= LOSS)
        # Under the adapter that the GPU made, on both.
        value = both("--model", f"{MODELS}/demo", "--adapter", "tuned=cuda", "--methods", "loss,min_k_plus_plus")
        check("scores under its adapter", f"{value:.1e}", value <= SCORES)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
