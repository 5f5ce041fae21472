#!/usr/bin/env python3
"""pdr-audit beside PyTorch and transformers, on the same checkpoint and texts, in one run, turn by turn.

    cargo build --release && cargo bench --bench throughput --no-run
    python benches/versus_transformers/run.py TEXTS.jsonl MODEL_DIR [MODEL_DIR ...] [--limit 200] [--runs 5]

Prints one table: for each model medians with the lowest and highest run, the ratio to the better of the peer's two modes, and how
far the scores of the two programs are apart. The Python that runs this needs torch, transformers and numpy (CPU builds will do).
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


NAMES = {"http": "pdr-audit over HTTP", "forward": "pdr-audit, forward passes alone",
         "per-text": "transformers, per text", "batched": "transformers, batches of 32"}


def measure(model, texts, limit, runs):
    """All four programs in turn, `runs` times: a list of lines for each."""
    rates, threads = {name: [] for name in NAMES}, None
    for _ in range(runs):
        for layer, line in ours(model, texts, limit).items():
            rates[layer].append(line)
        for mode in ("per-text", "batched"):
            line = peer(model, texts, limit, mode)
            threads = line["threads"]
            rates[mode].append(line)
    return rates, threads


def rows(model, rates, difference):
    median = {name: statistics.median(r["texts_per_s"] for r in runs) for name, runs in rates.items()}
    best = max(median["per-text"], median["batched"])
    for name, title in NAMES.items():
        texts_per_s = [r["texts_per_s"] for r in rates[name]]
        tokens = statistics.median(r["tokens_per_s"] for r in rates[name])
        spread = f"{min(texts_per_s):.1f} to {max(texts_per_s):.1f}"
        first, last = (model.name, f"{difference:.0e}") if name == "http" else ("", "")
        yield f"| {first} | {title} | {median[name]:.1f} | {spread} | {tokens:,.0f} | {median[name] / best:.2f} | {last} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("texts", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path, nargs="+")
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    texts, limit = arguments.texts.resolve(), arguments.limit
    header = "| model | what | texts/s (median) | lowest to highest | tokens/s | ratio to the better peer | largest difference of a score, relative to 1 + its size |"
    for number, model in enumerate(path.absolute() for path in arguments.models):
        rates, threads = measure(model, texts, limit, arguments.runs)
        if number == 0:
            print(f"{limit} texts, {arguments.runs} runs, {threads} threads, f32\n\n{header}\n{'|---' * 7}|")
        print("\n".join(rows(model, rates, disagreement(model, texts, limit))), flush=True)


if __name__ == "__main__":
    main()
