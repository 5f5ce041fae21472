"""Recomputes a report of kind `di` (docs/methods.md#dataset-inference) for recompute.py, from the scores of its texts."""
import math

import numpy as np

SPLITS, CLIPPED = 20, 0.025


def upper_tail(t, freedom):
    """P(T >= t) of Student's distribution, by the continued fraction of the incomplete beta function (Lentz)."""
    a, b, x = freedom / 2, 0.5, freedom / (freedom + t * t)

    def fraction(a, b, x):
        c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
        value = d
        for m in range(1, 500):
            for term in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                         -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
                d, c = 1 / (1 + term * d), 1 + term / c
                value *= c * d
            if abs(c * d - 1) < 1e-16:
                break
        return value

    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    near = x < (a + 1) / (a + b + 2)
    both = front * fraction(a, b, x) / a if near else 1 - front * fraction(b, a, 1 - x) / b
    return both / 2 if t >= 0 else 1 - both / 2


def welch(first, second):
    a, b = first.var(ddof=1) / len(first), second.var(ddof=1) / len(second)
    freedom = (a + b) ** 2 / (a * a / (len(first) - 1) + b * b / (len(second) - 1))
    statistic = (first.mean() - second.mean()) / math.sqrt(a + b)
    return statistic, freedom, upper_tail(statistic, freedom)


def logistic(rows, members):
    """The weights, then the intercept, at the minimum of the ridge regression, by damped Newton's method."""
    rows, y = np.column_stack([rows, np.ones(len(rows))]), members.astype(float)
    ridge = np.append(np.ones(rows.shape[1] - 1), 0)
    loss = lambda w: np.logaddexp(0, (1 - 2 * y) * (rows @ w)).sum() + (ridge * w * w).sum() / 2
    weights = np.zeros(rows.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-rows @ weights))
        gradient = rows.T @ (p - y) + ridge * weights
        step = np.linalg.solve(rows.T @ (rows * (p * (1 - p))[:, None]) + np.diag(ridge), gradient)
        scale = 1.0
        while loss(weights - scale * step) > loss(weights) * (1 + 1e-13) and scale > 1e-6:
            scale /= 2
        weights = weights - scale * step
    return weights


def combined(columns, members, learning, testing):
    """The combined scores of the half that is tested, and the weights."""
    x = np.array(columns).T
    ordered, outside = np.sort(x[learning], axis=0), int(CLIPPED * len(learning))
    x = np.clip(x, ordered[outside], ordered[-1 - outside])
    deviation = x[learning].std(axis=0)
    varies = deviation > 1e-12 * np.abs(x[learning]).max(axis=0)
    x = np.where(varies, (x - x[learning].mean(axis=0)) / np.where(varies, deviation, 1), 0)
    weights = logistic(x[learning], members[learning])
    return x[testing] @ weights[:-1] + weights[-1], weights[:-1]


def median(values):
    return sorted(values)[(len(values) - 1) // 2]


def check(report, tools):
    """Checks the combination; `tools` is the module that recomputes reports."""
    inference, labels = report.report["inference"], [method["label"] for method in report.report["methods"]]
    mixed = {cluster for cluster in set(report.clusters) if len(set(report.members[report.clusters == cluster])) == 2}
    of_one = np.array([cluster not in mixed for cluster in report.clusters])
    columns = [report.column("scores", label) for label in labels]
    control = [report.under_control(method) for method in report.report["methods"]] if report.report["provenance"].get("control") else []
    control = [column for column in control if not np.isnan(column).all()]
    complete = of_one & ~np.any(np.isnan(columns + control), axis=0)
    only = lambda column: np.where(complete, column, np.nan)
    scores, count = report.of_clusters(*map(only, columns + control))
    known = ~np.isnan(scores[0])
    members, scores = report.cluster_members[known], [column[known] for column in scores]
    target, control = scores[:len(columns)], scores[len(columns):]
    at, seed = ["inference"], inference["seed"]
    report.check([*at, "left_out"], int((~complete).sum()))
    report.check([*at, "texts_per_cluster"], count)
    report.check([*at, "clusters"], [int(members.sum()), int((~members).sum())])
    if min(members.sum(), (~members).sum()) < 4:
        return
    splits, weights = [], []
    for number in range(SPLITS):
        words = tools.Words(tools.chacha8(tools.key(seed, f"halves of split {number}".encode()), [0], 4 * len(members) + 256)[0])
        learning, testing = [], []
        for side in (True, False):
            places = tools.shuffle(words, [int(place) for place in np.nonzero(members == side)[0]])
            learning += places[:len(places) // 2]
            testing += places[len(places) // 2:]
        learning, testing = np.array(sorted(learning)), np.array(sorted(testing))
        score, learnt = combined(target, members, learning, testing)
        side, strata = members[testing], np.zeros(len(testing), dtype=int)
        area, error = tools.by_stratum(np.zeros(len(side)), score, side, strata)
        split = {"p_value": welch(score[side], score[~side])[2], "auroc": 0.5 + area, "standard_error": error}
        if control:
            alone, _ = combined(control, members, learning, testing)
            difference, error = tools.by_stratum(alone, score, side, strata)
            ranks = tools.centred_ranks(score, strata) - tools.centred_ranks(alone, strata)
            test = tools.max_t(side, strata, [(ranks, np.ones(len(side), dtype=bool))], seed)[0]
            area_alone = tools.by_stratum(np.zeros(len(side)), alone, side, strata)[0]
            split["control"] = {"auroc": 0.5 + area_alone, "difference": difference, "standard_error": error, "p_value": test[0] if test else 1.0}
        splits.append(split)
        weights.append(learnt)
        for name, value in split.items():
            for inner, number_of in (value.items() if isinstance(value, dict) else [(None, value)]):
                report.check([*at, "splits", number, name] + ([inner] if inner else []), number_of, 1e-7)
    report.check([*at, "tested"], [int(side.sum()), int((~side).sum())])
    for place, weight in enumerate(np.mean(weights, axis=0)):
        report.check([*at, "weights", place, "weight"], float(weight), 1e-7)
    p_value = min(1.0, 2 * median([split["p_value"] for split in splits]))
    report.check([*at, "p_value"], p_value, 1e-7)
    bounds = lambda value, error, confidence: [median([s * value(x) - tools.quantile(confidence) * error(x) for x in splits]) * s for s in (1, -1)]
    auroc, error = (lambda split: split["auroc"]), (lambda split: split["standard_error"])
    interval = [min(max(bound, 0.0), 1.0) for bound in bounds(auroc, error, 0.9975)]
    effect = {"auroc": median(list(map(auroc, splits))), "standard_error": median(list(map(error, splits))), "interval": interval,
              "lower_bound": max(bounds(auroc, error, 0.995)[0], 0.0), "p_value": p_value}
    for path in ([*at, "effect"], ["verdict", "effect"]):
        for name, value in effect.items():
            report.check([*path, name], value, 1e-7)
    if control:
        of_control = lambda name: (lambda split: split["control"][name])
        middle = {name: median([split["control"][name] for split in splits]) for name in ("auroc", "difference", "standard_error")}
        middle["p_value"] = min(1.0, 2 * median([split["control"]["p_value"] for split in splits]))
        for name, value in middle.items():
            report.check([*at, "control", name], value, 1e-7)
        report.check([*at, "control", "interval"], bounds(of_control("difference"), of_control("standard_error"), 0.9875), 1e-7)
        for name in ("auroc", "difference", "p_value"):
            report.check(["verdict", "control", name], middle[name], 1e-7)
        p_value = max(p_value, middle["p_value"])
    report.check(["verdict", "p_value"], p_value, 1e-7)
