#!/usr/bin/env python3
"""Compares pdr-audit with PyTorch and transformers on the same checkpoints and texts, alternately in one run.

    cargo build --release && cargo bench --bench throughput --no-run
    python benches/versus_transformers/make.py MODELS_DIR TOKENIZER.json
    python benches/versus_transformers/run.py MODELS_DIR TEXTS.jsonl [--cases 70m,mamba] [--limit 64] [--runs 5]
        [--device cpu|cuda] [--bench THROUGHPUT] [--program PDR_AUDIT]

`--device cuda` measures the cases of a GPU; `--bench` and `--program` name the two programs where they were built elsewhere.

Prints the processor and the form of each case's products, and a table: medians over the runs, the ratio to the better of the peer's two
modes (lowest and highest of the runs) in f32 and in the peer's "medium" precision, the share of the rate
of one large product that the products with weights reach (of the kernel used, and of candle's matmul in f32), how far the scores of the
two programs differ, and whether the targets of cases.py are met. Texts are cut from the words of TEXTS.jsonl. The Python that runs this
needs torch, transformers and numpy (CPU builds are sufficient for the cases of the CPU).
"""
import argparse, json, os, pathlib, platform, statistics, subprocess, sys, tempfile

from cases import CASES, cut, products

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEER = pathlib.Path(__file__).with_name("peer.py")
METHODS = "loss,zlib,min_k,min_k_plus_plus"
MODES = ("per-text", "batched")
LAYERS = {"cpu": "rate-candle,rate-kernel,http", "cuda": "http"}


def lines(command):
    out = subprocess.run([str(part) for part in command], cwd=ROOT, capture_output=True, text=True)
    if out.returncode != 0:
        sys.exit(out.stderr)
    return [json.loads(line) for line in out.stdout.splitlines() if line.startswith("{")]


def ours(model, texts, case, bench):
    command = [bench.absolute()] if bench else ["cargo", "bench", "--bench", "throughput", "--"]
    command += [model, texts, "--dtype", case.dtype, "--rounds", 1, "--layers", LAYERS[case.device], "--device", case.device]
    return {line["layer"]: line for line in lines(command)}


def peer(model, texts, mode, dtype, device, scores=None):
    command = [sys.executable, PEER, model, texts, "--mode", mode, "--dtype", dtype, "--device", device]
    return lines(command + (["--scores", scores] if scores else []))[0]


def disagreement(model, texts, case, directory, program):
    """The largest difference of any score between the two programs, relative to 1 + its magnitude; the peer runs in f32."""
    config, theirs = directory / "c.toml", directory / "scores.jsonl"
    config.write_text(f'[engine]\ndevice = "{case.device}"\ndtype = "{case.dtype}"\n[[models]]\nid = "bench"\nsource = {json.dumps(str(model))}\n')
    peer(model, texts, "per-text", "f32", case.device, theirs)
    mine = lines([program.absolute(), "score", texts, "--config", config, "--methods", METHODS])
    pairs = zip(mine, map(json.loads, theirs.read_text().splitlines()), strict=True)
    return max(abs(m["scores"][k] - v) / (1 + abs(v)) for m, t in pairs for k, v in t.items())


def measure(model, texts, case, runs, bench):
    """Runs all programs in turn, `runs` times: for each run, the rates by name."""
    measured = []
    for _ in range(runs):
        run = ours(model, texts, case, bench)
        for dtype in case.peer_dtypes:
            for mode in MODES:
                run[mode, dtype] = peer(model, texts, mode, dtype, case.device)
        measured.append(run)
        # Results so far, for a case that is cut off.
        rates = {" ".join(name) if isinstance(name, tuple) else name: round(value["tokens_per_s"]) for name, value in run.items() if "tokens_per_s" in value}
        print(f"{case.name}, tokens/s: {rates}", file=sys.stderr, flush=True)
    return measured


def processor():
    """Its name, cores that may be used, and those of its instructions that decide."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines() if pathlib.Path("/proc/cpuinfo").exists() else []
    facts = dict(map(str.strip, line.split(":", 1)) for line in lines if ":" in line)
    wanted = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")
    has = [name for name in wanted if name in facts.get("flags", "").split()]
    return f"{facts.get('model name', platform.processor())}, {len(os.sched_getaffinity(0))} cores: {' '.join(has) or 'none of ' + ' '.join(wanted)}"


def gpu():
    return subprocess.check_output(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], text=True).strip()


def spread(values, form):
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def row(case, model, measured, difference):
    tokens = lambda name: [run[name]["tokens_per_s"] for run in measured]
    best = lambda run, dtype: max(run[mode, dtype]["tokens_per_s"] for mode in MODES)
    ratios = lambda dtype: [run["http"]["tokens_per_s"] / best(run, dtype) for run in measured]
    first = case.peer_dtypes[0]
    shares = {}
    if case.device == "cpu":
        layers, head = products(model)
        length = measured[0]["http"]["tokens_per_s"] / measured[0]["http"]["texts_per_s"]
        flops = 2 * (layers + head * (length - 1) / length)
        share = lambda rate: [run["http"]["tokens_per_s"] * flops / (run[rate]["gflops"] * 1e9) for run in measured]
        shares = {rate: share(rate) for rate in ("rate-kernel", "rate-candle")}
    aims = [("ratio", ratios(first), case.ratio), ("share", shares.get("rate-kernel"), case.share)]
    cells = [case.name, spread(tokens("http"), ",.0f"), *(spread(tokens((mode, first)), ",.0f") for mode in MODES), spread(ratios(first), ".2f")]
    cells.append(spread(ratios("medium"), ".2f") if "medium" in case.peer_dtypes else "")
    cells += [measured[0]["rate-kernel"]["path"], *(spread(values, ".0%") for values in shares.values())] if shares else ["", "", ""]
    if case.ratio_bf16:
        aims.append(("to bf16", ratios("bf16"), case.ratio_bf16))
        cells[4] += f"; to the peer in bf16 {spread(ratios('bf16'), '.2f')}"
    met = [f"{what} {aim:g}: {'met' if statistics.median(values) >= aim else 'missed'}" for what, values, aim in aims if aim is not None]
    return "| " + " | ".join([*cells, f"{difference:.0e}", ", ".join(met)]) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("texts", type=pathlib.Path)
    parser.add_argument("--cases", default="", help="parts of their names, separated by commas")
    parser.add_argument("--limit", type=int, default=64, help="texts of a case")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--bench", type=pathlib.Path, help="the built benchmark `throughput`")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "target/release/pdr-audit")
    arguments = parser.parse_args()
    words = [word for line in open(arguments.texts) for word in json.loads(line)["text"].split()]
    wanted = [case for case in CASES if case.device == arguments.device and any(part in case.name for part in arguments.cases.split(","))]
    columns = ["case", "pdr-audit over HTTP, tokens/s", "peer per text", "peer in batches of 32", "ratio to the better",
               "ratio to the better in medium precision (TF32 on a GPU)", "form of products", "share of the kernel's rate", "share of candle's f32 matmul", "largest difference of a score, relative to 1 + its size", "aims"]
    print(processor() if arguments.device == "cpu" else f"{processor()}; {gpu()}")
    print(f"{arguments.limit} texts a case, {arguments.runs} runs, medians (lowest to highest)\n\n| {' | '.join(columns)} |\n{'|---' * len(columns)}|", flush=True)
    for case in wanted:
        model = (arguments.models / case.model).absolute()
        with tempfile.TemporaryDirectory() as directory:
            directory = pathlib.Path(directory)
            texts = directory / "texts.jsonl"
            texts.write_text("".join(json.dumps({"text": text}) + "\n" for text in cut(words, case, arguments.limit)))
            measured = measure(model, texts, case, arguments.runs, arguments.bench)
            threads = {run[mode, case.peer_dtypes[0]]["threads"] for run in measured for mode in MODES}
            if case.device == "cpu" and threads != {len(os.sched_getaffinity(0))}:
                print(f"the peer ran on {threads} threads of {len(os.sched_getaffinity(0))}", file=sys.stderr)
            print(row(case, model, measured, disagreement(model, texts, case, directory, arguments.program)), flush=True)


if __name__ == "__main__":
    main()
