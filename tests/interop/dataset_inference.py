#!/usr/bin/env python3
"""Dataset inference by scipy, which crates/mia compares: tests/fixtures/dataset_inference.json.

    python tests/interop/dataset_inference.py > tests/fixtures/dataset_inference.json      # numpy 2, scipy 1

Halves come from the draws of docs/draws.md, whose code this runs. The ridge regression is minimised by scipy's BFGS and then by Newton's
steps of its own; Welch's test is scipy's, and DeLong's standard error follows from the placements of the two samples.
"""
import json, pathlib, re, sys
import numpy as np
from scipy.optimize import minimize
from scipy.stats import rankdata, ttest_ind

ROOT = pathlib.Path(__file__).resolve().parents[2]
exec(re.search(r"```python\n(.*?)```", (ROOT / "docs/draws.md").read_text(), re.S).group(1))
SPLITS = 20


def halves(labels, seed, number):
    draws, learning, testing = stream(seed, f"halves of split {number}"), [], []
    for side in (1, 0):
        places = shuffle(draws, [place for place, label in enumerate(labels) if label == side])
        learning += places[:len(places) // 2]
        testing += places[len(places) // 2:]
    return sorted(learning), sorted(testing)


def weights_of(x, y):
    signs = 2 * y - 1
    rows = np.column_stack([x, np.ones(len(x))])
    ridge = np.append(np.ones(x.shape[1]), 0)
    loss = lambda w: np.logaddexp(0, -signs * (rows @ w)).sum() + (ridge * w * w).sum() / 2
    gradient = lambda w: rows.T @ (1 / (1 + np.exp(-rows @ w)) - y) + ridge * w
    w = minimize(loss, np.zeros(rows.shape[1]), jac=gradient, method="BFGS").x
    for _ in range(5):
        p = 1 / (1 + np.exp(-rows @ w))
        w = w - np.linalg.solve(rows.T @ (rows * (p * (1 - p))[:, None]) + np.diag(ridge), gradient(w))
    return w


def auroc(scores, labels):
    a, b = scores[labels == 1], scores[labels == 0]
    above = (a[:, None] > b) + 0.5 * (a[:, None] == b)
    error = np.sqrt(above.mean(1).var(ddof=1) / len(a) + above.mean(0).var(ddof=1) / len(b))
    return above.mean(), error


def inference(labels, columns, seed):
    labels, x = np.array(labels), np.array(columns).T
    splits, weights = [], []
    for number in range(SPLITS):
        learning, testing = halves(labels, seed, number)
        ordered = np.sort(x[learning], 0)
        outside = int(0.025 * len(learning))
        clipped = np.clip(x, ordered[outside], ordered[len(learning) - 1 - outside])
        mean, deviation = clipped[learning].mean(0), clipped[learning].std(0)
        standard = np.where(deviation > 0, (clipped - mean) / np.where(deviation > 0, deviation, 1), 0)
        w = weights_of(standard[learning], labels[learning])
        combined, side = standard[testing] @ w[:-1] + w[-1], labels[testing]
        test = ttest_ind(combined[side == 1], combined[side == 0], equal_var=False, alternative="greater")
        area, error = auroc(combined, side)
        splits.append({"p_value": float(test.pvalue), "auroc": float(area), "standard_error": float(error)})
        weights.append(w[:-1])
    median = sorted(split["p_value"] for split in splits)[(SPLITS - 1) // 2]
    return {"splits": splits, "weights": np.mean(weights, 0).tolist(), "p_value": min(1.0, 2 * median)}


if __name__ == "__main__":
    random = np.random.default_rng(5)
    labels = [int(label) for label in random.permutation([1] * 31 + [0] * 44)]
    common = random.normal(size=75)
    columns = [np.round(scale * (common + random.normal(size=75)) + shift * np.array(labels), 6).tolist()
               for scale, shift in ((1.0, 0.9), (0.01, 0.004), (30.0, 0.0))] + [[0.25] * 75]
    columns[0][3] = 60.0
    json.dump({"labels": labels, "features": columns, "seed": 11} | inference(labels, columns, 11), sys.stdout)
    print()
