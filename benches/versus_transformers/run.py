#!/usr/bin/env python3
"""pdr-audit beside PyTorch and transformers, on the same checkpoint and texts, in one run, turn by turn.

    cargo build --release && cargo bench --bench throughput --no-run
    python benches/versus_transformers/run.py MODEL_DIR TEXTS.jsonl [--limit 200] [--runs 5]

Prints medians with the lowest and highest run, the ratio to the better of the peer's two modes, and how far the scores of the
two programs are apart. The Python that runs this needs torch, transformers and numpy (CPU builds will do).
"""
import argparse, json, pathlib, statistics, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEER = pathlib.Path(__file__).with_name("peer.py")
METHODS = "loss,zlib,min_k,min_k_plus_plus"


def lines(command):
    out = subprocess.run([str(part) for part in command], cwd=ROOT, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return [json.loads(line) for line in out.stdout.decode().splitlines() if line.startswith("{")]


def ours(model, texts, limit):
    command = ["cargo", "bench", "--bench", "throughput", "--", model, texts, "--limit", limit, "--rounds", 1]
    return {line["layer"]: line for line in lines(command)}


def peer(model, texts, limit, mode, scores=None):
    command = [sys.executable, PEER, model, texts, "--mode", mode, "--limit", limit]
    return lines(command + (["--scores", scores] if scores else []))[0]


def disagreement(model, texts, limit):
    """The largest difference of any score between the two programs, relative to 1 + its size."""
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        config, some, theirs = directory / "c.toml", directory / "texts.jsonl", directory / "scores.jsonl"
        config.write_text(f'[[models]]\nid = "bench"\nsource = {json.dumps(str(model))}\n')
        some.write_text("".join(line + "\n" for line in open(texts).read().splitlines()[:limit]))
        peer(model, texts, limit, "per-text", theirs)
        mine = lines([ROOT / "target/release/pdr-audit", "score", some, "--config", config, "--methods", METHODS])
        pairs = zip(mine, map(json.loads, theirs.read_text().splitlines()), strict=True)
        return max(abs(m["scores"][k] - v) / (1 + abs(v)) for m, t in pairs for k, v in t.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("texts", type=pathlib.Path)
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    model, texts, limit = arguments.model.resolve(), arguments.texts.resolve(), arguments.limit
    rates = {name: [] for name in ("forward", "http", "per-text", "batched")}
    threads = None
    for _ in range(arguments.runs):
        for layer, line in ours(model, texts, limit).items():
            rates[layer].append(line)
        for mode in ("per-text", "batched"):
            line = peer(model, texts, limit, mode)
            threads = line["threads"]
            rates[mode].append(line)
    median = {name: statistics.median(r["texts_per_s"] for r in runs) for name, runs in rates.items()}
    best = max(median["per-text"], median["batched"])
    print(f"{limit} texts, {arguments.runs} runs, {threads} threads, f32\n")
    print("| what | texts/s (median) | lowest to highest | tokens/s | ratio to the better peer |")
    print("|---|---|---|---|---|")
    names = {"http": "pdr-audit over HTTP", "forward": "pdr-audit, forward passes alone", "per-text": "transformers, per text", "batched": "transformers, batches of 32"}
    for name, title in names.items():
        texts_per_s = [r["texts_per_s"] for r in rates[name]]
        tokens = statistics.median(r["tokens_per_s"] for r in rates[name])
        print(f"| {title} | {median[name]:.1f} | {min(texts_per_s):.1f} to {max(texts_per_s):.1f} | {tokens:,.0f} | {median[name] / best:.2f} |")
    cost = [1 - h["texts_per_s"] / f["texts_per_s"] for h, f in zip(rates["http"], rates["forward"])]
    print(f"\nQueue, tokenizing, methods and HTTP cost {100 * statistics.median(cost):.1f} % of the forward rate ({100 * min(cost):.1f} to {100 * max(cost):.1f}).")
    print(f"Largest difference of a score, relative to 1 + its size: {disagreement(model, texts, limit):.1e}")


if __name__ == "__main__":
    main()
