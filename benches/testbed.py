#!/usr/bin/env python3
"""Checks a whole audit against a table computed elsewhere: AUROC of every method here, plain and with PDR.

    cargo build --release
    python3 benches/testbed.py TESTBED_DIR [--program target/release/pdr-audit] [--tolerance 0.002]

TESTBED_DIR holds `model/` (a checkpoint), `data/length{32,64,128}.jsonl` (labelled texts) and `results.json` (AUROC by length
and score, from PyTorch, transformers and scikit-learn). Exits 1 where any AUROC differs by more than the tolerance: f32 rounding
may swap the order of a few of the 160,000 pairs of a member and a non-member, each worth 6e-6. Needs no package.
"""
import argparse, json, pathlib, subprocess, sys, tempfile

OURS = {"loss": "loss", "zlib": "zlib", "mink": "min_k", "mink++": "min_k_plus_plus"}
DECAYS = ("linear", "exponential", "polynomial")


def method(column):
    """The request for a column of the table such as `mink|linear|1.0`; None for those of other methods."""
    base, _, pdr = column.partition("|")
    decay, _, alpha = pdr.partition("|")
    if base not in OURS or (pdr and decay not in DECAYS):
        return None
    request = {"name": OURS[base], "label": column}
    if base.startswith("mink"):
        request["k"] = 0.2
    if pdr:
        request["pdr"] = {"decay": decay, "alpha": float(alpha)}
    return request


def audit(program, config, texts, methods):
    command = [program, "audit", texts, "--config", config, "--format", "json", "--methods", json.dumps(methods)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("testbed", type=pathlib.Path)
    parser.add_argument("--program", default="target/release/pdr-audit")
    parser.add_argument("--tolerance", type=float, default=0.002)
    arguments = parser.parse_args()
    results = json.loads((arguments.testbed / "results.json").read_text())
    worst = 0.0
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as config:
        source = json.dumps(str((arguments.testbed / "model").resolve()))
        print(f'[[models]]\nid = "testbed"\nsource = {source}', file=config, flush=True)
        for length, table in results.items():
            reference = {column: row["auroc"] for column, row in table["results"].items() if method(column)}
            texts = str(arguments.testbed / "data" / f"length{length}.jsonl")
            report = audit(arguments.program, config.name, texts, [method(column) for column in reference])
            print(f"\n{length} words, {report['samples']['total']} texts\n{'score':28} {'reference':>10} {'ours':>10} {'difference':>11}")
            for row in report["methods"]:
                want, got = reference[row["label"]], row["auroc"]
                worst = max(worst, abs(got - want))
                print(f"{row['label']:28} {want:10.5f} {got:10.5f} {got - want:+11.5f}")
    print(f"\nworst difference {worst:.5f}, tolerance {arguments.tolerance}")
    return int(worst > arguments.tolerance)


if __name__ == "__main__":
    sys.exit(main())
