#!/usr/bin/env python3
"""Compares the bootstrap of an audit with scikit-learn: speed on the same samples, alternately, and statistics on the same draws.

    python3 benches/bootstrap.py [--columns 20] [--samples 10000] [--replicates 1000] [--runs 5] [--peer-runs 3] [--peer-replicates 20]

The peer is the usual hand-written implementation: for each replicate and column `roc_auc_score` and `roc_curve`, on indices drawn once
for all columns. It runs fewer replicates, in one process, and its time is extrapolated; ours runs all of them in as many threads as there are
cores. Exits with 1 if means differ by more than chance allows, or statistics on the same draws by more than 1e-12. Needs NumPy and scikit-learn.
"""
import argparse, json, os, pathlib, statistics, subprocess, sys, tempfile, time
import numpy as np
from sklearn.metrics import roc_auc_score, roc_curve

TARGETS = [0.005, 0.01, 0.05]
TOLERANCE = 1e-12


def data(columns, samples):
    """Labels, half of them members, and scores of increasing separation; every fourth column is rounded, so that it has ties."""
    random = np.random.default_rng(0)
    labels = np.arange(samples) % 2
    scores = random.normal(size=(columns, samples)) + labels * np.linspace(0.1, 1.0, columns)[:, None]
    scores[3::4] = scores[3::4].round(2)
    return labels, scores


def build():
    command = ["cargo", "bench", "--bench", "bootstrap", "--no-run", "--message-format", "json"]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.splitlines()
    built = [line for line in map(json.loads, lines) if line.get("target", {}).get("name") == "bootstrap" and line.get("executable")]
    return built[-1]["executable"]


class Ours:
    def __init__(self, directory, labels, scores):
        self.program, self.directory = build(), pathlib.Path(directory)
        self.files = [self.directory / name for name in ("scores", "labels", "indices")]
        for file, numbers in zip(self.files, (scores.astype("<f8"), labels.astype("u1"))):
            numbers.tofile(file)

    def run(self, *options):
        command = [self.program, *map(str, self.files[:2]), "--targets", ",".join(map(str, TARGETS)), *map(str, options)]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)

    def run_on(self, draws):
        draws.astype("<u4").tofile(self.files[2])
        return self.run("--indices", self.files[2])


def peer(labels, scores, draws):
    """Returns the seconds, and by replicate and column the AUROC and the true positive rate at each target."""
    start = time.perf_counter()
    values = np.empty((len(draws), len(scores), 1 + len(TARGETS)))
    for replicate, rows in enumerate(draws):
        drawn = labels[rows]
        for column, all_scores in enumerate(scores):
            values[replicate, column, 0] = roc_auc_score(drawn, all_scores[rows])
            fpr, tpr, _ = roc_curve(drawn, all_scores[rows], drop_intermediate=False)
            values[replicate, column, 1:] = [tpr[fpr <= target].max() for target in TARGETS]
    return time.perf_counter() - start, values


def summaries(values):
    """By column and statistic: mean, population standard deviation, 2.5 and 97.5 percentiles."""
    return np.stack([values.mean(0), values.std(0), *np.percentile(values, [2.5, 97.5], axis=0)], axis=-1)


def numbers(result):
    """The same statistics from our result."""
    row = lambda s: [s["mean"], s["standard_deviation"], *s["interval"]]
    rows = [column["bootstrap"] for column in result["columns"]]
    return np.array([[row(s) for s in [column["auroc"], *column["tpr_at_fpr"]]] for column in rows])


def spread(times):
    return f"{statistics.median(times):8.3f} s ({min(times):.3f} to {max(times):.3f}, {len(times)} runs)"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, default in (("columns", 20), ("samples", 10_000), ("replicates", 1000), ("runs", 5), ("peer-runs", 3), ("peer-replicates", 20)):
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args()
    labels, scores = data(arguments.columns, arguments.samples)
    random = np.random.default_rng(1)
    scale = arguments.replicates / arguments.peer_replicates
    ours_seconds, peer_seconds, peer_values = [], [], []
    with tempfile.TemporaryDirectory() as directory:
        ours = Ours(directory, labels, scores)
        result = ours.run("--replicates", arguments.replicates)
        worst = 0.0
        for run in range(max(arguments.runs, arguments.peer_runs)):
            if run < arguments.runs:
                result = ours.run("--replicates", arguments.replicates)
                ours_seconds.append(result["seconds"])
            if run < arguments.peer_runs:
                draws = random.integers(0, arguments.samples, (arguments.peer_replicates, arguments.samples))
                seconds, values = peer(labels, scores, draws)
                peer_seconds.append(seconds * scale)
                peer_values.append(values)
                worst = max(worst, np.abs(numbers(ours.run_on(draws)) - summaries(values)).max())
    values = np.concatenate(peer_values)
    # Both means are of independent replicates: four standard errors of their difference, dominated by the smaller
    # sample.
    error = values[:, :, 0].std(0) * np.sqrt(1 / len(values) + 1 / arguments.replicates)
    deviation = (np.abs(numbers(result)[:, 0, 0] - values[:, :, 0].mean(0)) / error).max()
    print(f"{arguments.columns} columns x {arguments.samples:,} samples x {arguments.replicates:,} replicates, {os.cpu_count()} cores")
    print(f"pdr-audit              {spread(ours_seconds)}")
    print(f"scikit-learn           {spread(peer_seconds)}, extrapolated from {arguments.peer_replicates} replicates a run")
    print(f"ratio of the medians   {statistics.median(peer_seconds) / statistics.median(ours_seconds):8.0f}")
    print(f"worst difference of a mean, deviation or percentile on the same draws {worst:.1e}, tolerance {TOLERANCE}")
    print(f"worst difference of mean AUROCs on different draws {deviation:.1f} standard errors, at most 4")
    return int(worst > TOLERANCE or deviation > 4)


if __name__ == "__main__":
    sys.exit(main())
