#!/usr/bin/env python3
"""Compares the max-T permutation test with NumPy and SciPy: speed on the same samples, alternately, and p-values.

    python3 benches/max_t.py [--columns 6] [--samples 800] [--permutations 999] [--runs 9]

The peer permutes the labels as rows of one matrix and multiplies it with the matrix of centred mid-ranks, in blocks of rows. Exits with 1 if a
p-value differs by more than five standard errors. Both times of a run are the best of five. Needs NumPy and SciPy.
"""
import argparse, json, os, pathlib, statistics, subprocess, sys, tempfile, time
import numpy as np
from scipy.stats import rankdata


def peer(labels, scores, permutations, random, rows=999):
    start = time.perf_counter()
    ranks = rankdata(scores, axis=1).T
    ranks -= ranks.mean(0)
    ranks /= ranks.std(0)
    observed = labels.astype(float) @ ranks
    order = np.argsort(observed)
    alone, largest = np.zeros(len(scores)), np.zeros(len(scores))
    for first in range(0, permutations, rows):
        permuted = random.permuted(np.tile(labels.astype(float), (min(rows, permutations - first), 1)), axis=1)
        sums = permuted @ ranks
        alone += (sums >= observed - 1e-9).sum(0)
        largest[order] += (np.maximum.accumulate(sums[:, order], axis=1) >= observed[order] - 1e-9).sum(0)
    p = (1 + alone) / (1 + permutations)
    adjusted = (1 + largest) / (1 + permutations)
    adjusted[order[::-1]] = np.maximum.accumulate(adjusted[order[::-1]])
    return time.perf_counter() - start, np.stack([p, adjusted], axis=1)


def build():
    command = ["cargo", "bench", "--bench", "max_t", "--no-run", "--message-format", "json"]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.splitlines()
    built = [line for line in map(json.loads, lines) if line.get("target", {}).get("name") == "max_t" and line.get("executable")]
    return built[-1]["executable"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("columns", 6), ("samples", 800), ("permutations", 999), ("runs", 9), ("rows", 999)):
        parser.add_argument(f"--{name}", type=int, default=value)
    arguments = parser.parse_args()
    program, random = build(), np.random.default_rng(0)
    labels = np.arange(arguments.samples) % 2
    common = random.normal(size=arguments.samples)
    effects = np.linspace(0, 3.5 / arguments.samples**0.5, arguments.columns)[:, None]
    scores = 0.7 * common + 0.7 * random.normal(size=(arguments.columns, arguments.samples)) + labels * effects
    with tempfile.TemporaryDirectory() as directory:
        files = [pathlib.Path(directory) / name for name in ("scores", "labels")]
        for file, numbers in zip(files, (scores.astype("<f8"), labels.astype("u1"))):
            numbers.tofile(file)
        ours_seconds, peer_seconds, ours_values, peer_values = [], [], [], []
        for run in range(arguments.runs):
            command = [program, *map(str, files), "--permutations", str(arguments.permutations), "--seed", str(run)]
            result = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            ours_seconds.append(result["seconds"])
            ours_values.append([[test["p_value"], test["p_value_adjusted"]] for test in result["tests"]])
            timed = [peer(labels, scores, arguments.permutations, random, arguments.rows) for _ in range(5)]
            values = timed[0][1]
            peer_seconds.append(min(seconds for seconds, _ in timed))
            peer_values.append(values)
    ours, theirs = np.mean(ours_values, axis=0), np.mean(peer_values, axis=0)
    p = (ours + theirs) / 2
    error = np.sqrt(2 * np.maximum(p * (1 - p), 1e-4) / (arguments.permutations * arguments.runs))
    worst = (np.abs(ours - theirs) / error).max()
    print(f"{arguments.columns} columns x {arguments.samples:,} samples x {arguments.permutations:,} permutations, {os.cpu_count()} cores")
    for name, seconds in (("pdr-audit", ours_seconds), ("NumPy", peer_seconds)):
        print(f"{name:10} {statistics.median(seconds) * 1e3:10.2f} ms ({min(seconds) * 1e3:.2f} to {max(seconds) * 1e3:.2f})")
    print(f"ratio of the medians {statistics.median(peer_seconds) / statistics.median(ours_seconds):.1f}")
    print(f"worst difference of a p-value {worst:.1f} standard errors, at most 5")
    return int(worst > 5)


if __name__ == "__main__":
    sys.exit(main())
