#!/usr/bin/env python3
"""Recomputes the numbers of an audit's report from the scores of its samples:

    python3 examples/recompute.py REPORT.json SCORES.jsonl [TEXTS.jsonl]

REPORT.json is the response of `/v1/audits/{id}`, SCORES.jsonl that of `/v1/audits/{id}/scores`; `pdr-audit audit --format json --scores` writes
both as well. With TEXTS.jsonl, the samples that were audited, what the report says of the texts alone is recomputed too, with the log-odds by
which the lists were compared. Nothing is taken from the program that wrote them: the formulas are those of docs/verdict.md, the random draws
those of docs/draws.md. Prints how many numbers were recomputed and which were not, since they come from token statistics; exits with 1 if one
is off. Needs NumPy.
"""
import hashlib, json, math, struct, sys
from statistics import NormalDist

import numpy as np

from texts import Texts, folds, naive_bayes

LEVEL, MARGIN, FEWEST, PERMUTATIONS, BLOCK = 0.01, 0.15, 20, 9_999, 16
# By the name of a measure of the classifier, its name in a row of scores.
CONTROL_MEASURES = {"control_loss": "loss", "control_min_k_plus_plus": "min_k_plus_plus_20", "control_min_k_5": "min_k_5", "control_min_k_20": "min_k_20"}
quantile = NormalDist().inv_cdf


# Random draws (docs/draws.md).

def key(seed, purpose):
    return hashlib.sha256(struct.pack("<Q", seed) + purpose).digest()


def chacha8(key, streams, words):
    """32-bit words of ChaCha with 8 rounds: `words` of them for each stream, counted from block 0."""
    blocks, streams = -(-words // 16), np.asarray(streams, dtype=np.uint64)
    shape = (len(streams), blocks)
    counter = np.broadcast_to(np.arange(blocks, dtype=np.uint64), shape)
    stream = np.broadcast_to(streams[:, None], shape)
    low, high = (lambda x: (x & np.uint64(0xFFFFFFFF)).astype(np.uint32)), (lambda x: (x >> np.uint64(32)).astype(np.uint32))
    fixed = struct.unpack("<4I", b"expand 32-byte k") + struct.unpack("<8I", key)
    start = [np.full(shape, word, dtype=np.uint32) for word in fixed] + [low(counter), high(counter), low(stream), high(stream)]
    state = [word.copy() for word in start]

    def rotate(x, bits):
        return (x << np.uint32(bits)) | (x >> np.uint32(32 - bits))

    def quarter(a, b, c, d):
        for one, two, three, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            state[one] += state[two]
            state[three] = rotate(state[three] ^ state[one], bits)

    for _ in range(4):
        for a in range(4):
            quarter(a, 4 + a, 8 + a, 12 + a)
        for a in range(4):
            quarter(a, 4 + (a + 1) % 4, 8 + (a + 2) % 4, 12 + (a + 3) % 4)
    return np.stack([a + b for a, b in zip(state, start)], axis=-1).reshape(len(streams), -1)[:, :words]


class Words:
    """The words of one stream, one after the other."""

    def __init__(self, words):
        self.words, self.place = words.tolist(), 0

    def u32(self):
        self.place += 1
        return self.words[self.place - 1]

    def u64(self):
        return self.u32() | self.u32() << 32

    def below(self, bound):
        """Lemire 2019: the upper half of a product, drawn again while its lower half is below 2^32 mod bound."""
        while True:
            product = self.u32() * bound
            if product & 0xFFFFFFFF >= (1 << 32) % bound:
                return product >> 32


def shuffle(words, items):
    for last in range(len(items) - 1, 0, -1):
        fair = (1 << 64) - 1 - ((1 << 64) - 1) % (last + 1)
        while (drawn := words.u64()) >= fair:
            pass
        items[last], items[drawn % (last + 1)] = items[drawn % (last + 1)], items[last]
    return items


def subsets(words, size, count):
    """Subsets of `count` among `size` at random, one permutation after the other."""
    halvings = min(range(1, 5), key=lambda halvings: abs((size >> halvings) - count)) if count >= size // 16 else None
    while True:
        bits = 0
        for place in range(-(-size // 64)):
            word = (1 << min(64, size - 64 * place)) - 1 if halvings else 0
            for _ in range(halvings or 0):
                word &= words.u64()
            bits |= word << 64 * place
        chosen = bits.bit_count()
        while chosen != count:
            cluster, too_many = words.below(size), chosen > count
            if (bits >> cluster & 1) == too_many:
                bits ^= 1 << cluster
                chosen += -1 if too_many else 1
        yield bits


# Statistics.

def twice_components(scores, members):
    """For each sample twice the number of the other class that it beats (members) or is beaten by (others), ties once."""
    out = np.zeros(len(scores), dtype=np.int64)
    ups, downs = np.sort(scores[members]), np.sort(scores[~members])
    out[members] = np.searchsorted(downs, scores[members], "left") + np.searchsorted(downs, scores[members], "right")
    out[~members] = 2 * len(ups) - np.searchsorted(ups, scores[~members], "left") - np.searchsorted(ups, scores[~members], "right")
    return out


def auroc(scores, members):
    m, n = members.sum(), (~members).sum()
    return twice_components(scores, members)[members].sum() / (2 * m * n) if m and n else None


def variance(components, members, clusters=None):
    """Of the mean of twice the components: DeLong's, or Obuchowski's by cluster."""
    m, n = int(members.sum()), int((~members).sum())
    ups, downs = components / (2 * n), components / (2 * m)
    if clusters is None or len(set(clusters)) == len(clusters):
        if m < 2 or n < 2:
            return None
        return np.var(ups[members], ddof=1) / m + np.var(downs[~members], ddof=1) / n
    numbers = np.unique(clusters, return_inverse=True)[1]
    add = lambda values, which: np.bincount(numbers[which], values[which], numbers.max() + 1)
    counts = lambda which: np.bincount(numbers[which], minlength=numbers.max() + 1)
    theta = components[members].sum() / (2 * m * n)
    with_up, with_down = counts(members), counts(~members)
    one, other = (add(ups, members) - with_up * theta), (add(downs, ~members) - with_down * theta)
    i, j = (with_up > 0).sum(), (with_down > 0).sum()
    if i < 2 or j < 2:
        return None
    both = (with_up > 0) & (with_down > 0)
    total = len(with_up)
    s10, s01 = (one**2).sum() * i / (i - 1), (other**2).sum() * j / (j - 1)
    s11 = (one * other)[both].sum() * total / (total - 1) if total > 1 else 0
    return max(0.0, s10 / m**2 + s01 / n**2 + 2 * s11 / (m * n))


def by_stratum(first, second, members, strata):
    """The difference of two AUROCs within strata, weighted by pairs, with its standard error."""
    delta = spread = pairs = 0.0
    largest = 0.25 if (first == first[0]).all() else 1.0
    for stratum in np.unique(strata):
        here = strata == stratum
        a, b, label = first[here], second[here], members[here]
        m, n = int(label.sum()), int((~label).sum())
        if not m or not n:
            continue
        components = twice_components(b, label) - twice_components(a, label)
        delta += m * n * (auroc(b, label) - auroc(a, label))
        own = variance(components, label)
        spread += (m * n) ** 2 * (largest if own is None else own)
        pairs += m * n
    return (delta / pairs, math.sqrt(spread) / pairs) if pairs else None


def centred_ranks(scores, strata):
    ranks = np.zeros(len(scores), dtype=np.int64)
    for stratum in np.unique(strata):
        here = (strata == stratum) & ~np.isnan(scores)
        known = np.sort(scores[here])
        below, above = np.searchsorted(known, scores[here], "left"), len(known) - np.searchsorted(known, scores[here], "right")
        ranks[here] = below - above
    return ranks


def max_t(members, strata, columns, seed=0):
    """Step-down maxT of Westfall and Young: for each column (ranks, scored) its p-value and the adjusted one, or None."""
    scored = np.any([scored for _, scored in columns], axis=0)
    order = np.array([c for s in np.unique(strata) for c in np.nonzero(scored & (strata == s))[0]
                      if len(set(members[scored & (strata == s)])) == 2], dtype=int)
    groups = [np.nonzero(strata[order] == s)[0] for s in np.unique(strata[order])]
    tests = []
    for place, (ranks, known) in enumerate(columns):
        ranks, known = ranks[order], known[order]
        compared = any(len(set(members[order[g]][known[g]])) == 2 for g in groups)
        deviation = 0.0
        for g in groups:
            size, drawn = len(g), min(members[order[g]].sum(), (~members[order[g]]).sum())
            deviation += drawn * (size - drawn) / (size * (size - 1)) * (ranks[g].astype(float) ** 2).sum()
        if compared and deviation > 0:
            tests.append((ranks[members[order]].sum(), math.sqrt(deviation), place, ranks))
    tests.sort(key=lambda test: test[0] / test[1])
    if not tests:
        return [None] * len(columns)
    blocks = -(-PERMUTATIONS // BLOCK)
    each = sum(2 * 4 * (-(-len(g) // 64)) + 40 + 6 * math.isqrt(len(g)) for g in groups) * BLOCK + 256
    words = chacha8(key(seed, b"max-t"), range(blocks), each)
    chosen = np.zeros((PERMUTATIONS, len(order)), dtype=np.int8)
    for block in range(blocks):
        stream = Words(words[block])
        label = members[order]
        draws = [(g, 1 if label[g].sum() <= (~label[g]).sum() else -1,
                  subsets(stream, len(g), int(min(label[g].sum(), (~label[g]).sum())))) for g in groups]
        for permutation in range(block * BLOCK, min(PERMUTATIONS, (block + 1) * BLOCK)):
            for g, sign, subset in draws:
                bits = next(subset)
                flags = np.unpackbits(np.frombuffer(bits.to_bytes(-(-len(g) // 8), "little"), np.uint8), bitorder="little")
                chosen[permutation, g] = sign * flags[:len(g)].astype(np.int8)
    sums = chosen.astype(float) @ np.stack([ranks for *_, ranks in tests], axis=1).astype(float)
    alone = (sums >= [observed for observed, *_ in tests]).sum(axis=0)
    standard = sums / [deviation for _, deviation, *_ in tests]
    largest = (np.maximum.accumulate(standard, axis=1) >= [o / d - 1e-9 for o, d, *_ in tests]).sum(axis=0)
    found, adjusted = [None] * len(columns), 0.0
    for at in reversed(range(len(tests))):
        adjusted = max(adjusted, (1 + largest[at]) / (1 + PERMUTATIONS))
        found[tests[at][2]] = ((1 + alone[at]) / (1 + PERMUTATIONS), adjusted)
    return found


def operating_points(scores, weights, members):
    """Of each distinct score in descending order the score, true and false positives."""
    values, inverse = np.unique(scores, return_inverse=True)
    ups = np.bincount(inverse, weights * members, len(values))[::-1]
    downs = np.bincount(inverse, weights * ~members, len(values))[::-1]
    return values[::-1], np.cumsum(ups).astype(np.int64), np.cumsum(downs).astype(np.int64), ups, downs


def budget(fpr, others):
    product = fpr * others
    return min(others, round(product) if abs(product - round(product)) <= 1e-9 * round(product) else math.floor(product))


def tpr_at(points, fpr, m, n):
    values, true, false, ups, _ = points
    allowed = int((false <= budget(fpr, n)).sum())
    best = [at for at in range(allowed) if ups[at] > 0][-1:]
    return (true[best[0]] / m, float(values[best[0]]), int(true[best[0]])) if best else (0.0, None, 0)


def clopper_pearson(successes, trials, confidence):
    """By bisection of the binomial distribution function."""
    def probability(p, counts):
        logs = (math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1) + k * math.log(p) + (trials - k) * math.log1p(-p)
                for k in counts)
        return math.fsum(map(math.exp, logs))

    tail, above = (lambda p: probability(p, range(successes, trials + 1))), (lambda p: probability(p, range(successes + 1)))

    def solve(function, rising):
        low, high = 1e-300, 1 - 1e-16
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if (function(middle) < (1 - confidence) / 2) == rising else (low, middle)
        return (low + high) / 2

    return [solve(tail, True) if successes else 0.0, solve(above, False) if successes < trials else 1.0]


# The report.

class Report:
    def __init__(self, report, rows):
        self.report, self.rows, self.done, self.off = report, rows, set(), []
        self.members = np.array([row["label"] == 1 for row in rows])
        numbers = {}
        self.clusters = np.array([numbers.setdefault(row["cluster"], len(numbers)) for row in rows])
        groups = {}
        self.strata = np.array([groups.setdefault(row.get("group"), len(groups)) for row in rows])
        firsts = {cluster: place for place, cluster in reversed(list(enumerate(self.clusters)))}
        self.cluster_members = np.array([self.members[firsts[cluster]] for cluster in range(len(firsts))])
        self.cluster_strata = np.array([self.strata[firsts[cluster]] for cluster in range(len(firsts))])
        self.texts = [[] for _ in firsts]
        for place in sorted(range(len(rows)), key=lambda place: rows[place]["text_digest"]):
            self.texts[self.clusters[place]].append(place)

    def check(self, path, expected, tolerance=1e-9):
        found = self.report
        for part in path:
            found = found[part] if isinstance(found, list) or part in found else None
        if isinstance(expected, (list, tuple)):
            for place, value in enumerate(expected):
                self.check([*path, place], value, tolerance)
            return
        self.compare("/".join(map(str, path)), found, expected, tolerance)

    def compare(self, path, found, expected, tolerance):
        self.done.add(path)
        same = found == expected if not isinstance(expected, (float, np.floating)) or found is None else math.isclose(
            found, expected, rel_tol=tolerance, abs_tol=tolerance)
        if not same:
            self.off.append((path, found, expected))

    def column(self, field, name):
        return np.array([row.get(field, {}).get(name, np.nan) if name else row.get(field, np.nan) for row in self.rows], dtype=float)

    def of_clusters(self, *columns):
        """Mean scores of clusters, each over the same number of its texts, and that number."""
        known = ~np.any(np.isnan(columns), axis=0)
        texts = [[place for place in texts if known[place]] for texts in self.texts]
        count = min((len(places) for places in texts if places), default=0)
        mean = lambda column: np.array([math.fsum(column[places[:count]]) / count if places else np.nan for places in texts])
        return [mean(column) for column in columns], count

    def area(self, first, second):
        known = ~np.isnan(first) & ~np.isnan(second)
        return by_stratum(first[known], second[known], self.cluster_members[known], self.cluster_strata[known])

    def run(self):
        self.check(["samples", "total"], len(self.rows))
        self.check(["samples", "members"], int(self.members.sum()))
        self.check(["samples", "non_members"], int((~self.members).sum()))
        self.check(["samples", "clusters"], len(self.texts))
        self.check(["samples", "largest_cluster"], max(map(len, self.texts)))
        request = self.report["provenance"]["request"]
        self.methods(["methods"], self.report["methods"], np.ones(len(self.rows), bool), request["metrics"])
        groups = list(dict.fromkeys(row["group"] for row in self.rows if row.get("group") is not None))
        for place, group in enumerate(groups):
            here = np.array([row.get("group") == group for row in self.rows])
            self.check(["groups", place, "group"], group)
            self.check(["groups", place, "total"], int(here.sum()))
            self.check(["groups", place, "members"], int(self.members[here].sum()))
            self.check(["groups", place, "non_members"], int((~self.members[here]).sum()))
            self.methods(["groups", place, "methods"], self.report["groups"][place]["methods"], here, request["metrics"])
        if "blind" in self.report:
            tokens = np.array([row["scored_tokens"] for row in self.rows], dtype=float)
            self.check(["blind", "lengths", "scored_tokens"], auroc(tokens, self.members))
        effects = self.evidence(self.report["methods"])
        comparability = self.comparability()
        if "verdict" in self.report:
            self.verdict(effects[[m["label"] for m in self.report["methods"]].index(request["primary"])], comparability)

    def methods(self, path, methods, here, metrics):
        holm = []
        for place, method in enumerate(methods):
            at = [*path, place]
            scores = self.column("scores", method["label"])[here]
            known = ~np.isnan(scores)
            scores, members, clusters = scores[known], self.members[here][known], self.clusters[here][known]
            self.check([*at, "scored"], int(known.sum()))
            m, n = int(members.sum()), int((~members).sum())
            if not m or not n:
                continue
            self.check([*at, "auroc"], auroc(scores, members))
            spread = variance(twice_components(scores, members), members, clusters)
            self.check([*at, "auroc_standard_error"], None if spread is None else math.sqrt(spread))
            points = operating_points(scores, np.ones(len(scores)), members)
            confidence = (metrics.get("bootstrap") or {}).get("confidence", 0.95)
            for target, fpr in enumerate(metrics["fpr_targets"]):
                tpr, threshold, found = tpr_at(points, fpr, m, n)
                self.check([*at, "tpr_at_fpr", target, "fpr"], fpr)
                self.check([*at, "tpr_at_fpr", target, "tpr"], tpr)
                self.check([*at, "tpr_at_fpr", target, "threshold"], threshold)
                self.check([*at, "tpr_at_fpr", target, "false_positive_budget"], budget(fpr, n))
                self.check([*at, "tpr_at_fpr", target, "interval"], clopper_pearson(found, m, confidence), 1e-8)
            first = int(np.argmax(points[1] * 100 >= m * 95))
            self.check([*at, "fpr_at_95_tpr"], points[2][first] / n)
            if metrics.get("bootstrap"):
                self.bootstrap(at, method, here, metrics)
            versus = method.get("versus_baseline")
            if versus and not np.isnan(self.column("scores", versus["baseline"])).all():
                self.versus(at, method, versus["baseline"], here, metrics)
            if versus and versus.get("p_value") is not None:
                holm.append((versus["p_value"], place))
        if path == ["methods"]:
            highest = 0.0
            for rank, (p_value, place) in enumerate(sorted(holm)):
                highest = max(highest, min(1.0, p_value * (len(holm) - rank)))
                self.check([*path, place, "versus_baseline", "p_value_adjusted"], highest)

    def draws(self, scored, here, settings):
        """For each replicate how often it draws each of the samples that are scored."""
        labels = np.nonzero(scored)[0]
        clusters = self.clusters[here][scored]
        units = [np.nonzero(clusters == c)[0] for c in dict.fromkeys(clusters.tolist())]
        seeded = hashlib.sha256(struct.pack("<Q", settings["seed"]) + scored.astype(np.uint8).tobytes()).digest()
        words = chacha8(seeded, range(settings["replicates"]), len(units) + 64)
        single = all(len(unit) == 1 for unit in units)
        for row in words:
            stream = Words(row)
            drawn = np.bincount([stream.below(len(units)) for _ in units], minlength=len(units))
            counts = np.zeros(len(labels), dtype=np.int64)
            if single:
                counts[np.concatenate(units)] = drawn
            else:
                for unit, times in zip(units, drawn):
                    counts[unit] += times
            yield counts

    def replicates(self, scores, members, draws, targets):
        values, inverse = np.unique(scores, return_inverse=True)
        kept = []
        for counts in draws:
            m, n = int(counts[members].sum()), int(counts[~members].sum())
            if not m or not n:
                kept.append(None)
                continue
            points = operating_points(scores, counts, members)
            ups, downs = points[3], points[4]
            won = (ups * (2 * (n - points[2]) + downs)).sum()
            kept.append([won / (2 * m * n), *(tpr_at(points, fpr, m, n)[0] for fpr in targets)])
        return kept

    def bootstrap(self, at, method, here, metrics):
        settings, targets = metrics["bootstrap"], metrics["fpr_targets"]
        scores = self.column("scores", method["label"])[here]
        scored = ~np.isnan(scores)
        rows = self.replicates(scores[scored], self.members[here][scored], self.draws(scored, here, settings), targets)
        kept = np.array([row for row in rows if row is not None])
        tail = 50 * (1 - settings["confidence"])
        for place, path in enumerate([["auroc"], *(["tpr_at_fpr", target] for target in range(len(targets)))]):
            column = kept[:, place]
            self.check([*at, "bootstrap", *path, "mean"], float(column.mean()))
            self.check([*at, "bootstrap", *path, "standard_deviation"], float(column.std()))
            self.check([*at, "bootstrap", *path, "interval"], np.percentile(column, [tail, 100 - tail]).tolist())
        for target, fpr in enumerate(targets):
            self.check([*at, "bootstrap", "tpr_at_fpr", target, "fpr"], fpr)
        self.check([*at, "bootstrap", "discarded"], len(rows) - len(kept))

    def versus(self, at, method, baseline, here, metrics):
        both = [self.column("scores", label)[here] for label in (method["label"], baseline)]
        scored = ~np.isnan(both[0]) & ~np.isnan(both[1])
        members = self.members[here][scored]
        if not members.any() or members.all():
            return
        one, base = both[0][scored], both[1][scored]
        self.check([*at, "versus_baseline", "delta"], auroc(one, members) - auroc(base, members))
        settings = metrics.get("bootstrap")
        if not settings:
            return
        draws = list(self.draws(scored, here, settings))
        pairs = zip(self.replicates(one, members, draws, []), self.replicates(base, members, draws, []))
        deltas = np.array([a[0] - b[0] for a, b in pairs if a is not None])
        no_better, tail = int((deltas <= 0).sum()), 50 * (1 - settings["confidence"])
        self.check([*at, "versus_baseline", "p_value"], (1 + no_better) / (1 + len(deltas)))
        self.check([*at, "versus_baseline", "p_value_raw"], no_better / len(deltas))
        self.check([*at, "versus_baseline", "interval"], np.percentile(deltas, [tail, 100 - tail]).tolist())

    def evidence(self, methods):
        """p-values by permutation and what the control finds; for each method what its verdict would be about."""
        columns, differences, effects = [], [], []
        for method in methods:
            scores = self.column("scores", method["label"])
            of_control = self.column("control_measures", "loss") if method["name"] == "ref" else self.column("control_scores", method["label"])
            (alone,), count = self.of_clusters(scores)
            (target, control), _ = self.of_clusters(scores, of_control)
            rank = lambda values: centred_ranks(values, self.cluster_strata)
            columns.append((rank(alone), ~np.isnan(alone)))
            differences.append((rank(target) - rank(control), ~np.isnan(target)))
            effects.append({"scores": alone, "texts": count, "target": target, "control": control})
        tests = max_t(self.cluster_members, self.cluster_strata, columns + differences)
        for place, (method, effect) in enumerate(zip(methods, effects)):
            at, found, beyond = ["methods", place], tests[place], tests[len(methods) + place]
            if found:
                self.check([*at, "p_value"], found[0])
                self.check([*at, "p_value_adjusted"], found[1])
            effect["p_value"] = found[0] if found else 1.0
            if "control" in method:
                target, control = effect["target"], effect["control"]
                difference, error = self.area(control, target)
                effect["difference"] = (0.5 + self.area(np.zeros(len(control)), control)[0], difference, beyond and beyond[0])
                self.check([*at, "control", "auroc"], effect["difference"][0])
                self.check([*at, "control", "difference"], difference)
                self.check([*at, "control", "standard_error"], error)
                z = quantile(0.975) * error
                self.check([*at, "control", "interval"], [difference - z, difference + z])
                if beyond:
                    self.check([*at, "control", "p_value"], beyond[0])
                    self.check([*at, "control", "p_value_adjusted"], beyond[1])
                self.negative_controls(at, method)
            if "auroc_stratified" in method:
                scores = self.column("scores", method["label"])
                known = ~np.isnan(scores)
                area = by_stratum(np.zeros(known.sum()), scores[known], self.members[known], self.strata[known])
                self.check([*at, "auroc_stratified"], 0.5 + area[0])
        return effects

    def negative_controls(self, at, method):
        """Differences to the control between the largest groups of non-members, at most 8 of at least 50 texts."""
        scores = self.column("scores", method["label"])
        control = self.column("control_measures", "loss") if method["name"] == "ref" else self.column("control_scores", method["label"])
        known = ~self.members & ~np.isnan(scores) & ~np.isnan(control) & np.array([row.get("group") is not None for row in self.rows])
        counts = {}
        for place in np.nonzero(known)[0]:
            counts[self.rows[place]["group"]] = counts.get(self.rows[place]["group"], 0) + 1
        sizes = sorted((count for count in counts.values() if count >= 50), reverse=True)
        groups = [group for group, count in counts.items() if sizes and count >= sizes[:8][-1]][:8]
        pairs = [(a, b) for place, a in enumerate(groups) for b in groups[place + 1:]]
        for place, (a, b) in enumerate(pairs):
            here = known & np.array([row.get("group") in (a, b) for row in self.rows])
            first = np.array([row.get("group") == a for row in self.rows])[here]
            difference = auroc(scores[here], first) - auroc(control[here], first)
            components = twice_components(scores[here], first) - twice_components(control[here], first)
            z = quantile(1 - 0.05 / len(pairs) / 2) * math.sqrt(variance(components, first, self.clusters[here]))
            path = [*at, "control", "negative_controls", place]
            self.check([*path, "difference"], difference)
            self.check([*path, "interval"], [difference - z, difference + z])

    def comparability(self):
        path = ["verdict", "comparability"]
        if "comparability" not in self.report.get("verdict", {}):
            return None
        (odds,), _ = self.of_clusters(self.compared(self.column("log_odds", None)))
        delta, error = self.area(np.zeros(len(odds)), odds)
        auroc, z = 0.5 + delta, quantile(0.95)
        upper = min(1.0, auroc + z * error)
        state = "comparable" if upper <= 0.5 + MARGIN else "too_few" if auroc - z * error <= 0.5 else "lists_differ"
        for field, value in (("auroc", auroc), ("standard_error", error), ("upper_bound", upper), ("margin", MARGIN), ("state", state)):
            self.check([*path, field], value)
        for place, measure in enumerate(self.report["verdict"]["comparability"]["measures"]):
            if measure["measure"] in CONTROL_MEASURES:
                (values,), _ = self.of_clusters(self.compared(self.column("control_measures", CONTROL_MEASURES[measure["measure"]])))
                self.check([*path, "measures", place, "auroc"], 0.5 + self.area(np.zeros(len(values)), values)[0])
        return state, upper

    def compared(self, column):
        """The values of the texts that the primary method scores."""
        primary = self.report["provenance"]["request"].get("primary")
        return column if primary is None else np.where(np.isnan(self.column("scores", primary)), np.nan, column)

    def texts_alone(self, samples):
        """Words, lengths and the classifier, from the texts."""
        tokens = np.array([row["scored_tokens"] for row in self.rows], dtype=float)
        control = {name: self.column("control_measures", of_row) for name, of_row in CONTROL_MEASURES.items()}
        texts = [sample["text"] for sample in samples]
        if len(texts) != len(self.rows):
            sys.exit(f"there are {len(texts)} texts, and {len(self.rows)} were scored")
        for row, text in zip(self.rows, texts):
            if hashlib.sha256(text.encode()).hexdigest()[:32] != row["text_digest"]:
                sys.exit(f"sample {row['index']} of the texts is not the one that was scored")
        known = Texts(texts, self.members, self.clusters, self.strata, tokens, control)
        # The program ends its fit where the gradient is 1e-8 of that at the start.
        for row, log_odds in zip(self.rows, known.log_odds):
            if "log_odds" in row:
                self.compare(f"log_odds of sample {row['index']}", row["log_odds"], log_odds, 1e-6)
        area = lambda values: 0.5 + self.area(np.zeros(len(values)), values)[0]
        verdict = self.report.get("verdict", {}).get("comparability", {})
        differences = {}
        for name, values in known.measures.items():
            if not np.all(np.isnan(values)):
                differences[name] = area(self.of_clusters(self.compared(values))[0][0])
        largest = sorted(differences, key=lambda name: -abs(differences[name] - 0.5))[:3]
        path = ["verdict", "comparability", "measures"]
        for place, measure in enumerate(verdict.get("measures", [])):
            self.check([*path, place, "measure"], largest[place])
            self.check([*path, place, "auroc"], differences[measure["measure"]])
            have = {"words": known.words, "characters": known.ngrams}.get(measure["measure"])
            for at, separating in enumerate(measure.get("separating", [])):
                has = np.array([separating["ngram"] in items for items in have])
                self.check([*path, place, "separating", at, "members"], has[self.members].mean())
                self.check([*path, place, "separating", at, "non_members"], has[~self.members].mean())
        if "blind" not in self.report:
            return
        self.check(["blind", "lengths", "bytes_per_zlib_byte"], auroc(known.measures["bytes_per_zlib_byte"], self.members))
        if "words" not in self.report["blind"]:
            return
        odds = known.measures["words"]
        observed, error = auroc(odds, self.members), math.sqrt(variance(twice_components(odds, self.members), self.members, self.clusters))
        z = quantile(0.975) * error
        interval = [max(0.0, observed - z), min(1.0, observed + z)] if error > 0 else None
        reached = 0
        for permutation in range(199):
            words = Words(chacha8(key(0, f"words permutation {permutation}".encode()), [0], 4 * len(self.cluster_members) + 64)[0])
            members = np.array(shuffle(words, list(self.cluster_members)))[self.clusters]
            permuted = naive_bayes(known.word_rows, members, folds(members.astype(int), self.clusters))
            reached += auroc(permuted, members) >= observed - 1e-12
        for field, value in (("auroc", observed), ("standard_error", error), ("interval", interval), ("p_value", (1 + reached) / 200)):
            self.check(["blind", "words", field], value)

    def verdict(self, effect, comparability):
        delta, error = self.area(np.zeros(len(effect["scores"])), effect["scores"])
        auroc, p_value = 0.5 + delta, effect["p_value"]
        interval = [min(1.0, max(0.0, auroc + sign * quantile(0.995) * error)) for sign in (-1, 1)]
        lower = max(0.0, auroc - quantile(0.99) * error)
        for field, value in (("auroc", auroc), ("standard_error", error), ("interval", interval), ("lower_bound", lower), ("p_value", p_value)):
            self.check(["verdict", "effect", field], value)
        counts = [0, 0]
        for stratum in np.unique(self.cluster_strata):
            here = (self.cluster_strata == stratum) & ~np.isnan(effect["scores"])
            both = [int((here & self.cluster_members).sum()), int((here & ~self.cluster_members).sum())]
            counts = [a + b for a, b in zip(counts, both)] if all(both) else counts
        self.check(["verdict", "clusters"], counts)
        self.check(["verdict", "texts_per_cluster"], effect["texts"])
        self.check(["verdict", "level"], LEVEL)
        m, n = counts
        found = min(1.0, 0.5 + (quantile(0.99) + quantile(0.8)) * math.sqrt((m + n + 1) / (12 * m * n)))
        self.check(["verdict", "could_have_found"], found)
        control = effect.get("difference")
        if control:
            for field, value in zip(("auroc", "difference", "p_value"), control):
                self.check(["verdict", "control", field], value)
        beyond = control and control[2]
        self.check(["verdict", "p_value"], max(p_value, beyond) if beyond is not None else p_value)
        state, reason = "association", "above_control" if control else "above_chance"
        if min(counts) < FEWEST:
            state, reason = "inconclusive", "too_few"
        elif comparability is None:
            state, reason = "inconclusive", "not_compared"
        elif comparability[0] != "comparable":
            state, reason = "inconclusive", "lists_differ" if comparability[0] == "lists_differ" else "too_few_to_compare"
        elif interval[1] < 0.5:
            state, reason = "no_association", "members_score_lower"
        elif p_value > LEVEL or auroc <= 0.5:
            state, reason = "no_association", "not_above_chance"
        elif control and beyond is None:
            state, reason = "inconclusive", "not_scored"
        elif control and beyond > LEVEL:
            state, reason = "no_association", "not_above_control"
        elif lower <= comparability[1]:
            state, reason = "inconclusive", "not_above_differences"
        self.check(["verdict", "state"], state)
        self.check(["verdict", "reason"], reason)


def numbers(value, path=""):
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from numbers(inner, f"{path}/{name}" if path else name)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from numbers(inner, f"{path}/{place}")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path


def main():
    report = json.load(open(sys.argv[1]))
    report = report.get("results", report)
    rows = [json.loads(line) for line in open(sys.argv[2])]
    checked = Report(report, rows)
    checked.run()
    if len(sys.argv) > 3:
        checked.texts_alone([json.loads(line) for line in open(sys.argv[3])])
    # What the request says is no result.
    others = [path for path in numbers(report) if path not in checked.done and not path.startswith("provenance")]
    by_field = {}
    for path in others:
        field = "/".join(part for part in path.split("/") if not part.isdigit())
        by_field[field] = by_field.get(field, 0) + 1
    print(f"{len(checked.done)} values recomputed, {len(checked.off)} off")
    for path, found, expected in checked.off[:50]:
        print(f"OFF {path}: {found} in the report, {expected} recomputed")
    print(f"not recomputed, since it takes {'' if len(sys.argv) > 3 else 'the texts, '}token statistics or a calibration:")
    for field, count in by_field.items():
        print(f"  {count:6} {field}")
    sys.exit(bool(checked.off))


if __name__ == "__main__":
    main()
