#!/usr/bin/env python3
"""Recomputes the numbers of an audit's report from the scores of its samples:

    python3 examples/recompute.py REPORT.json SCORES.jsonl [--texts TEXTS.jsonl] [--tokens TOKENS.jsonl]
        [--known SCORES.jsonl [--known-texts TEXTS.jsonl]]

REPORT.json is the response of `/v1/audits/{id}`, SCORES.jsonl that of `/v1/audits/{id}/scores`; `pdr-audit audit --format json --scores` writes
both as well. With the texts, the samples that were audited, what the report says of them alone is recomputed too, with the log-odds by which the
lists were compared. Tokens are what `pdr-audit score --tokens` writes of the same texts; the profile by position and the test of the prior
come from them. An audit against a stored calibration takes the scores of the known non-members, which are those of an audit of the same samples
without labels, and their texts. Of a test of kind `di` the combination of all methods is recomputed, from the scores of an audit of the
same texts in the same order (suspects with label 1, then held-out texts with label 0) by the same methods and control. Nothing is taken from the program that wrote them: the formulas are those of docs/verdict.md, the random draws
those of docs/draws.md. Prints how many numbers were recomputed and which were not for want of a file; exits with 1 if one is off. Needs NumPy.
"""
import argparse, hashlib, json, math, re, struct, sys, unicodedata
from statistics import NormalDist

import numpy as np

import inference
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


def mann_whitney(first, second):
    """Exact below 25 a side without ties, else the normal approximation, corrected for ties and continuity."""
    m, n, both = len(first), len(second), np.concatenate([first, second])
    u = twice_components(both, np.arange(m + n) < m)[:m].sum() / 2
    _, ties = np.unique(both, return_counts=True)
    exact = m < 25 and n < 25 and len(ties) == m + n
    if exact:
        # Arrangements by U, one score of the first sample after the other.
        ways = np.zeros((m + 1, m * n + 1), dtype=object)
        ways[0, 0] = 1
        for rank in range(m + n):
            for used in range(min(rank, m - 1), -1, -1):
                below = rank - used
                if below <= n:
                    ways[used + 1, below:] += ways[used, :m * n + 1 - below]
        p_value = float(sum(ways[m, int(u):])) / float(sum(ways[m]))
    else:
        spread = m * n / 12 * (m + n + 1 - sum(int(t) ** 3 - int(t) for t in ties) / ((m + n) * (m + n - 1)))
        p_value = 0.5 * math.erfc((u - m * n / 2 - 0.5) / math.sqrt(2 * spread)) if spread > 0 else 1.0
    return {"u": float(u), "auroc": float(u / (m * n)), "p_value": p_value, "exact": exact}


def beta_binomial_upper(n, k, m):
    """The smallest number whose cumulative probability under BetaBinomial(n, k, m + 1 - k) is at least 0.95."""
    beta = lambda a, b: math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    cumulative = 0.0
    for count in range(n + 1):
        choose = math.lgamma(n + 1) - math.lgamma(count + 1) - math.lgamma(n - count + 1)
        cumulative += math.exp(choose + beta(count + k, n - count + m + 1 - k) - beta(k, m + 1 - k))
        if cumulative >= 0.95 * (1 - 1e-9):
            return count
    return n


# The report.

class Rows:
    """Rows of scores in two lists, with their clusters and groups."""

    def __init__(self, rows, members, clusters, groups):
        self.rows, self.members = rows, np.array(members)
        first = lambda values: (lambda numbers: np.array([numbers.setdefault(value, len(numbers)) for value in values]))({})
        self.clusters, self.strata = first(clusters), first(groups)
        firsts = {cluster: place for place, cluster in reversed(list(enumerate(self.clusters)))}
        self.cluster_members = np.array([self.members[firsts[cluster]] for cluster in range(len(firsts))])
        self.cluster_strata = np.array([self.strata[firsts[cluster]] for cluster in range(len(firsts))])
        self.texts = [[] for _ in firsts]
        # Copies of a text count as one, the first.
        first_rows = {row["text_digest"]: place for place, row in reversed(list(enumerate(rows)))}
        self.distinct = np.array(sorted(first_rows.values()))
        for digest, place in sorted(first_rows.items()):
            self.texts[self.clusters[place]].append(place)

    def column(self, field, name):
        fields = [field, "baseline_scores"] if field == "scores" else [field]
        value = lambda row: next((row[field][name] for field in fields if name in row.get(field, {})), np.nan)
        return np.array([value(row) if name else row.get(field, np.nan) for row in self.rows], dtype=float)

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


class Report(Rows):
    def __init__(self, report, rows):
        super().__init__(rows, [row.get("label") == 1 for row in rows], [row["cluster"] for row in rows], [row.get("group") for row in rows])
        self.report, self.done, self.off = report, set(), []
        self.labelled = all(row.get("label") is not None for row in rows)

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

    def run(self):
        self.check(["samples", "total"], len(self.rows))
        self.check(["samples", "members"], int(self.members.sum()))
        self.check(["samples", "non_members"], int((~self.members).sum()) if self.labelled else 0)
        self.check(["samples", "clusters"], len(self.texts))
        self.check(["samples", "largest_cluster"], int(np.bincount(self.clusters).max()))
        excluded = [row["index"] for row in self.rows if row["errors"]]
        for place, index in enumerate(excluded[:len(self.report["samples"]["excluded"])]):
            self.check(["samples", "excluded", place, "index"], index)
        for place, exclusion in enumerate(self.report["samples"]["exclusions"]):
            alike = [row for row in self.rows if any(error["code"] == exclusion["code"] for error in row["errors"])]
            self.check(["samples", "exclusions", place, "samples"], len(alike))
        request = self.report["provenance"]["request"]
        # The report repeats the parameters of the request.
        for place, method in enumerate(request["methods"]):
            for path, value in numbers(method):
                self.check(["methods", place, *path.split("/")], value)
        self.methods(["methods"], self.report["methods"], np.ones(len(self.rows), bool), request["metrics"])
        groups = list(dict.fromkeys(row["group"] for row in self.rows if row.get("group") is not None))
        for place, group in enumerate(groups if self.labelled else []):
            here = np.array([row.get("group") == group for row in self.rows])
            self.check(["groups", place, "group"], group)
            self.check(["groups", place, "total"], int(here.sum()))
            self.check(["groups", place, "members"], int(self.members[here].sum()))
            self.check(["groups", place, "non_members"], int((~self.members[here]).sum()))
            self.methods(["groups", place, "methods"], self.report["groups"][place]["methods"], here, request["metrics"])
        if not self.labelled:
            return
        if "blind" in self.report:
            tokens = np.array([row["scored_tokens"] for row in self.rows], dtype=float)
            self.check(["blind", "lengths", "scored_tokens"], auroc(tokens[self.distinct], self.members[self.distinct]))
        effects = self.evidence(self.report["methods"])
        comparability = self.comparability(self, self.compared(self.column("log_odds", None)))
        if "verdict" in self.report:
            self.verdict(self, effects[[m["label"] for m in self.report["methods"]].index(request["primary"])], comparability)

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
            of_control = self.under_control(method)
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

    def under_control(self, method):
        """Scores under the control; of methods that compare with a model themselves the control's loss."""
        itself = method["name"] in ("ref", "wbc", "ez")
        return self.column("control_measures", "loss") if itself else self.column("control_scores", method["label"])

    def negative_controls(self, at, method):
        """Differences to the control between the largest groups of non-members, at most 8 of at least 50 texts."""
        scores = self.column("scores", method["label"])
        control = self.under_control(method)
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

    def comparability(self, lists, log_odds):
        path = ["verdict", "comparability"]
        if "comparability" not in self.report.get("verdict", {}):
            return None
        (odds,), _ = lists.of_clusters(log_odds)
        delta, error = lists.area(np.zeros(len(odds)), odds)
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
        measured = np.array(["control_measures" in row for row in self.rows])
        if not measured[self.members].any() or not measured[~self.members].any():
            measured[:] = False
        control = {name: np.where(measured, self.column("control_measures", of_row), np.nan) for name, of_row in CONTROL_MEASURES.items()}
        known, of_rows = self.classified(self, texts_of(samples, self.rows), control)
        # The program ends its fit where the gradient is 1e-10 of that at the start.
        for row, log_odds in zip(self.rows, of_rows(known.log_odds)):
            if "log_odds" in row:
                self.compare(f"log_odds of sample {row['index']}", row["log_odds"], log_odds, 1e-8)
        self.measures(self, known, lambda values: self.compared(of_rows(values)))
        if "blind" not in self.report:
            return
        members, clusters = known.members, known.clusters
        self.check(["blind", "lengths", "bytes_per_zlib_byte"], auroc(known.measures["bytes_per_zlib_byte"], members))
        if "words" not in self.report["blind"]:
            return
        odds = known.measures["words"]
        observed, error = auroc(odds, members), math.sqrt(variance(twice_components(odds, members), members, clusters))
        z = quantile(0.975) * error
        interval = [max(0.0, observed - z), min(1.0, observed + z)] if error > 0 else None
        reached = 0
        for permutation in range(199):
            words = Words(chacha8(key(0, f"words permutation {permutation}".encode()), [0], 4 * len(self.cluster_members) + 64)[0])
            shuffled = np.array(shuffle(words, list(self.cluster_members)))[clusters]
            permuted = naive_bayes(known.word_rows, shuffled, folds(shuffled.astype(int), clusters))
            reached += auroc(permuted, shuffled) >= observed - 1e-12
        for field, value in (("auroc", observed), ("standard_error", error), ("interval", interval), ("p_value", (1 + reached) / 200)):
            self.check(["blind", "words", field], value)

    @staticmethod
    def classified(lists, texts, control):
        """The classifier of the distinct texts of two lists, and how its values are those of rows."""
        distinct = lists.distinct
        tokens = np.array([row["scored_tokens"] for row in lists.rows], dtype=float)
        members, clusters, strata, tokens = (column[distinct] for column in (lists.members, lists.clusters, lists.strata, tokens))
        control = {name: column[distinct] for name, column in control.items()}
        places = {lists.rows[row]["text_digest"]: place for place, row in enumerate(distinct)}
        known = Texts([texts[place] for place in distinct], members, clusters, strata, tokens, control)
        return known, lambda values: np.array([values[places[row["text_digest"]]] for row in lists.rows])

    def measures(self, lists, known, of_rows):
        """The measures by which the lists differ most."""
        area = lambda values: 0.5 + lists.area(np.zeros(len(values)), values)[0]
        differences = {}
        for name, values in known.measures.items():
            if not np.all(np.isnan(values)):
                differences[name] = area(lists.of_clusters(of_rows(values))[0][0])
        largest = sorted(differences, key=lambda name: -abs(differences[name] - 0.5))[:3]
        path = ["verdict", "comparability", "measures"]
        for place, measure in enumerate(self.report.get("verdict", {}).get("comparability", {}).get("measures", [])):
            self.check([*path, place, "measure"], largest[place])
            self.check([*path, place, "auroc"], differences[measure["measure"]])
            have = {"words": known.words, "characters": known.ngrams}.get(measure["measure"])
            for at, separating in enumerate(measure.get("separating", [])):
                has = np.array([separating["ngram"] in items for items in have])
                self.check([*path, place, "separating", at, "members"], has[known.members].mean())
                self.check([*path, place, "separating", at, "non_members"], has[~known.members].mean())

    def tokens(self, results):
        """The profile by position and the test of the prior, from each token's log-probability and entropy."""
        scored = [[(token["lp"], -token["mu"]) for token in result["tokens"] if token["lp"] is not None] for result in results]
        named = (("members", True), ("non_members", False)) if self.labelled else (("all", False),)

        def profile(path, rows, here):
            for at in range(len(rows)):
                self.check([*path, at, "position"], at + 1)
                for name, member in named:
                    column = [scored[place][at] for place in here if self.members[place] == member and len(scored[place]) > at]
                    if column:
                        lp, entropy = (math.fsum(values) / len(column) for values in zip(*column))
                        for field, value in (("count", len(column)), ("mean_lp", lp), ("mean_entropy", entropy)):
                            self.check([*path, at, name, field], value)
                        if len(column) > 1:
                            error = math.sqrt(math.fsum((value - lp) ** 2 for value, _ in column) / (len(column) - 1) / len(column))
                            self.check([*path, at, name, "standard_error_lp"], error)

        profile(["position_profile"], self.report.get("position_profile", []), range(len(scored)))
        for place, group in enumerate(self.report.get("groups", [])):
            here = [at for at, row in enumerate(self.rows) if row.get("group") == group["group"]]
            profile(["groups", place, "position_profile"], group.get("position_profile", []), here)
        if "prior_test" not in self.report:
            return
        counted = [place for place, tokens in enumerate(scored) if tokens]
        most = 256
        while most * len({self.clusters[place] for place in counted}) > 1 << 24:
            most //= 2
        positions = min(most, min(len(scored[place]) for place in counted))
        half, order = positions // 2, list(dict.fromkeys(self.clusters[place] for place in counted))
        numbered = {cluster: place for place, cluster in enumerate(order)}
        texts, early, late = np.zeros(len(order)), np.zeros(len(order)), np.zeros(len(order))
        slopes, labels = [], [None] * len(order)
        for place in counted:
            lp, entropy = (np.array(values) for values in zip(*scored[place]))
            at = numbered[self.clusters[place]]
            labels[at] = self.members[place] if labels[at] is None else labels[at]
            texts[at] += 1
            early[at] += lp[:half].mean()
            late[at] += lp[half:positions].mean()
            if len(entropy) > 1:
                time = np.arange(len(entropy)) - (len(entropy) - 1) / 2
                slopes.append((time * (entropy - entropy[0])).sum() / (time**2).sum())

        def gaps(labels):
            labels = np.array(labels)
            return [half[labels].sum() / texts[labels].sum() - half[~labels].sum() / texts[~labels].sum() for half in (early, late)]

        observed, reached = gaps(labels), 0
        words = Words(chacha8(key(0, b"prior test"), [0], 999 * (2 * len(labels) + 64))[0])
        for _ in range(999):
            shuffle(words, labels)
            permuted = gaps(labels)
            reached += permuted[0] - permuted[1] >= observed[0] - observed[1] - 1e-11
        for field, value in (("positions", positions), ("early_gap", observed[0]), ("late_gap", observed[1]), ("p_value", (1 + reached) / 1000),
                             ("entropy_slope", float(np.mean(slopes))), ("share_falling", float(np.mean(np.array(slopes) < 0)))):
            self.check(["prior_test", field], value)

    def against_known(self, known_rows, samples, known_samples):
        """p-values against known non-members, the list of texts, and the test of all texts together."""
        request = self.report["provenance"]["request"]
        source = request.get("calibration")
        if source is None or isinstance(source, str) and known_rows is None:
            return
        places, clusters = list(range(len(self.rows))), [("tested", int(cluster)) for cluster in self.clusters]
        if isinstance(source, str):
            known_clusters = [row["cluster"] for row in known_rows]
            forms = lambda rows, samples: [row["text_digest"] for row in rows] if samples is None else list(map(normalized, texts_of(samples, rows)))
            # Without both files equal texts are recognised, but not those that differ by case and white space.
            both = (samples, known_samples) if samples and known_samples else (None, None)
            tested = set(forms(self.rows, both[0]))
            overlap = {cluster for form, cluster in zip(forms(known_rows, both[1]), known_clusters) if form in tested}
            reported = self.report.get("shared_text", {"state": "not_checked"})
            left_out = set(), set()
            if reported["state"] == "checked":
                if both[0]:
                    left_out = self.shared_text(reported, *both)
                elif reported["works"] or reported["known_passages"] or reported["tested_passages"]:
                    return
            kept = [place for place, cluster in enumerate(known_clusters) if cluster not in overlap and place not in left_out[0]]
            unscored = lambda row: {**row, "scores": {}}
            tested_rows = [unscored(row) if place in left_out[1] else row for place, row in enumerate(self.rows)]
            rows = tested_rows + [known_rows[place] for place in kept]
            clusters += [("known", known_clusters[place]) for place in kept]
        else:
            alone = [c for c in range(len(self.texts)) if not self.members[self.clusters == c].any()] if self.labelled else []
            words = Words(chacha8(key(source.get("seed", 0), b"calibration share"), [0], 2 * len(alone) + 64)[0])
            drawn = set(shuffle(words, alone)[:math.floor(len(alone) * source["share"] + 0.5)])
            places = [place for place in places if self.clusters[place] not in drawn]
            others = [place for place in range(len(self.rows)) if self.clusters[place] in drawn]
            rows, clusters = [self.rows[place] for place in places + others], [clusters[place] for place in places + others]
        count = len(places)
        lists = Rows(rows, [place < count for place in range(len(rows))], clusters, [0] * len(rows))
        for place, method in enumerate(self.report["methods"]):
            column = lists.column("scores", method["label"])
            (scores,), texts = lists.of_clusters(column)
            tested, known = (scores[(lists.cluster_members == side) & ~np.isnan(scores)] for side in (True, False))
            primary = method["label"] == request["primary"]
            if primary:
                test = mann_whitney(tested, known)
                for field, value in test.items():
                    self.check(["dataset_test", field], value)
                if not self.labelled:
                    comparability = self.compared_with_known(lists, count, samples, known_samples, [] if isinstance(source, dict) else kept)
                    if "comparability" not in self.report["verdict"] or comparability:
                        self.verdict(lists, {"scores": scores, "texts": texts, "p_value": test["p_value"]}, comparability)
            known, m = np.sort(known), len(known)
            path = ["methods", place, "calibration"]
            self.check([*path, "clusters"], m)
            self.check([*path, "resolution"], 1 / (m + 1))
            targets = [(fpr, min(budget(fpr, m + 1), m)) for fpr in request["metrics"]["fpr_targets"]]
            for at, (fpr, k) in enumerate((fpr, k) for fpr, k in targets if k):
                self.check([*path, "threshold_at_fpr", at, "fpr"], fpr)
                self.check([*path, "threshold_at_fpr", at, "threshold"], float(known[m - k]))
                self.check([*path, "threshold_at_fpr", at, "fpr_upper_95"], clopper_pearson(k - 1, m, 0.9)[1], 1e-8)
            p_values = (1 + m - np.searchsorted(known, scores, "left")) / (m + 1)
            scored = [at for at in range(count) if not np.isnan(column[at])]
            for at in scored:
                row = lists.rows[at]
                self.compare(f"p-value of sample {row['index']}", row["p_values"][method["label"]], p_values[lists.clusters[at]], 1e-12)
            if (decision := request.get("decisions")) and decision["method"] == method["label"]:
                self.decisions(lists, scored, scores, p_values, m, decision)

    def decisions(self, lists, scored, scores, p_values, m, request):
        """The list of texts at a false discovery rate."""
        order = list(dict.fromkeys(lists.clusters[at] for at in scored))
        n, fdr, of = len(order), request["fdr"], p_values[order]
        pi0 = min(1.0, (1 + (of > 0.5).sum()) / (n / 2)) if request["procedure"] == "storey" else None
        factor = {"bh": 1.0, "storey": pi0, "by": math.fsum(1 / i for i in range(1, n + 1))}[request["procedure"]]
        adjusted, least = np.ones(n), 1.0
        for rank, place in reversed(list(enumerate(np.argsort(of, kind="stable"), 1))):
            least = min(least, factor * of[place] * n / rank)
            adjusted[place] = least
        listed = adjusted <= fdr * (1 + 1e-12)
        for at in scored:
            row, place = lists.rows[at], order.index(lists.clusters[at])
            self.compare(f"adjusted p-value of sample {row['index']}", row["p_value_adjusted"], float(adjusted[place]), 1e-9)
            self.compare(f"sample {row['index']} on the list", row["flagged"], bool(listed[place]), 0)
        k = round(of[listed].max() * (m + 1)) if listed.any() else None
        others = [all(lists.rows[at]["label"] == 0 for at in scored if lists.clusters[at] == cluster) for cluster in order] if self.labelled else None
        for field, value in (
            ("fdr", fdr), ("pi0", pi0), ("tested", n), ("rejected", int(listed.sum())),
            ("minimum_discoveries", math.ceil(n / (fdr * (m + 1)) * (1 - 1e-12))),
            ("threshold", float(scores[order][listed].min()) if k else None),
            ("fpr_upper_95", clopper_pearson(k - 1, m, 0.9)[1] if k else None),
            ("false_discoveries_upper_95", beta_binomial_upper(n, k, m) if k else None),
            ("non_members_rejected", int((listed & np.array(others)).sum()) if others else None),
        ):
            self.check(["decisions", field], value, 1e-8)
        documents = lambda cluster: [lists.rows[at].get("document") for at in scored if lists.clusters[at] == cluster]
        works = [(place, named, document) for place, named in enumerate(map(documents, order))
                 for document in dict.fromkeys(named) if document is not None]
        self.compare("works", len(self.report.get("works", [])), len(works), 0)
        for at, (place, named, document) in enumerate(works):
            for field, value in (
                ("document", document), ("passages", named.count(document)), ("score", float(scores[order[place]])),
                ("known_above", round(of[place] * (m + 1)) - 1), ("p_value", float(of[place])),
                ("p_value_adjusted", float(adjusted[place])), ("listed", bool(listed[place])),
            ):
                self.check(["works", at, field], value)

    def shared_text(self, reported, samples, known_samples):
        """The places of the known texts, and of the texts tested, that are left out for text that both have (docs/works.md)."""
        words = lambda sample: re.findall(r"\w+", normalized(sample["text"]))
        grams = lambda words: [tuple(words[at:at + 13]) for at in range(len(words) - 12)]
        step = reported["shortest_run"] - 12
        known = [grams(words(sample))[::step] if sample.get("document") is not None else [] for sample in known_samples]
        holders, sizes, names, of_rows, before = {gram: set() for list in known for gram in list}, {}, {}, [], (None, [])
        for at, sample in enumerate(samples):
            document = sample.get("document")
            work = ("text", at) if document is None else ("document", str(document))
            names.setdefault(work, sample.get("id") if document is None else document)
            run = (before[1] if before[0] == work else []) + words(sample)
            before = work, run[-12:]
            sizes[work] = sizes.get(work, 0) + len(grams(run))
            of_rows.append([gram for gram in grams(run) if gram in holders])
            for gram in of_rows[-1]:
                holders[gram].add(work)
        documents, known_out, passages, quoted, works = {}, set(), 0, set(), []
        for at, sample in enumerate(known_samples):
            if sample.get("document") is not None:
                documents.setdefault(str(sample["document"]), []).append(at)
        for places in documents.values():
            distinct, longest, runs = {gram for at in places for gram in known[at]}, 0, {}
            for gram in (gram for at in places for gram in known[at]):
                runs = {work: runs.get(work, 0) + 1 for work in holders[gram]}
                longest = max([longest, *runs.values()])
            counts = {}
            for work in (work for gram in distinct for work in holders[gram]):
                counts[work] = counts.get(work, 0) + 1
            held = sum(bool(holders[gram]) for gram in distinct)
            share = max([held / max(1, len(distinct))] + [min(1.0, n * step / max(1, sizes[work])) for work, n in counts.items()])
            words_in_run = (longest - 1) * step + 13 if longest else 0
            if longest and (share >= 0.1 or words_in_run >= 100):
                known_out.update(places)
                # Works are in the order in which their texts are.
                most = max(sizes, key=lambda work: counts.get(work, 0) / max(1, sizes[work]))
                works.append((known_samples[places[0]]["document"], names[most], share, words_in_run))
            else:
                with_shared = [at for at in places if any(holders[gram] for gram in known[at])]
                known_out.update(with_shared)
                passages += len(with_shared)
                quoted.update(gram for at in places for gram in known[at] if holders[gram])
        tested_out = {at for at, shared in enumerate(of_rows) if any(gram in quoted for gram in shared)}
        for field, value in (("shortest_run", step + 12), ("works", len(works)), ("known_passages", passages), ("tested_passages", len(tested_out))):
            self.check(["shared_text", field], value)
        for at, (document, name, share, longest) in enumerate(works[:1000]):
            for field, value in (("document", document), ("with", name), ("share", share), ("longest_run", longest)):
                self.check(["shared_text", "left_out", at, field], value)
        return known_out, tested_out

    def compared_with_known(self, lists, count, samples, known_samples, kept):
        """The classifier of texts and known non-members, which no row has the log-odds of; None without the texts."""
        if "comparability" not in self.report["verdict"] or not samples or not known_samples:
            return None
        texts = texts_of(samples, self.rows) + [known_samples[place]["text"] for place in kept]
        known, of_rows = self.classified(lists, texts, {})
        self.measures(lists, known, of_rows)
        return self.comparability(lists, of_rows(known.log_odds))

    def verdict(self, lists, effect, comparability):
        delta, error = lists.area(np.zeros(len(effect["scores"])), effect["scores"])
        auroc, p_value = 0.5 + delta, effect["p_value"]
        interval = [min(1.0, max(0.0, auroc + sign * quantile(0.995) * error)) for sign in (-1, 1)]
        lower = max(0.0, auroc - quantile(0.99) * error)
        for field, value in (("auroc", auroc), ("standard_error", error), ("interval", interval), ("lower_bound", lower), ("p_value", p_value)):
            self.check(["verdict", "effect", field], value)
        counts = [0, 0]
        for stratum in np.unique(lists.cluster_strata):
            here = (lists.cluster_strata == stratum) & ~np.isnan(effect["scores"])
            both = [int((here & lists.cluster_members).sum()), int((here & ~lists.cluster_members).sum())]
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


def normalized(text):
    return " ".join(unicodedata.normalize("NFKC", text).lower().split())


def texts_of(samples, rows):
    """The texts of samples, which must be those that were scored."""
    texts = [sample["text"] for sample in samples]
    if len(texts) != len(rows):
        sys.exit(f"there are {len(texts)} texts, and {len(rows)} were scored")
    for row, text in zip(rows, texts):
        if hashlib.sha256(text.encode()).hexdigest()[:32] != row["text_digest"]:
            sys.exit(f"sample {row['index']} of the texts is not the one that was scored")
    return texts


def numbers(value, path=""):
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from numbers(inner, f"{path}/{name}" if path else name)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from numbers(inner, f"{path}/{place}")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("report")
    parser.add_argument("scores")
    for option in ("texts", "tokens", "known", "known-texts"):
        parser.add_argument(f"--{option}")
    arguments = parser.parse_args()
    read = lambda name: name and [json.loads(line) for line in open(name)]
    report = json.load(open(arguments.report))
    report = report.get("results", report)
    texts, tokens, known, known_texts = map(read, (arguments.texts, arguments.tokens, arguments.known, arguments.known_texts))
    checked = Report(report, read(arguments.scores))
    if report.get("kind") == "di":
        inference.check(checked, sys.modules[__name__])
    else:
        checked.run()
        if texts and checked.labelled:
            checked.texts_alone(texts)
        if tokens:
            checked.tokens(tokens)
        checked.against_known(known, texts, known_texts)
    # What the request says and what it cost are no results.
    others = [path for path, _ in numbers(report) if path not in checked.done and not path.startswith(("provenance", "usage", "plan"))]
    by_field = {}
    for path in others:
        field = "/".join(part for part in path.split("/") if not part.isdigit())
        by_field[field] = by_field.get(field, 0) + 1
    print(f"{len(checked.done)} values recomputed, {len(checked.off)} off, {len(others)} not recomputed")
    for path, found, expected in checked.off[:50]:
        print(f"OFF {path}: {found} in the report, {expected} recomputed")
    for field, count in by_field.items():
        print(f"not recomputed: {count:6} {field}")
    sys.exit(bool(checked.off))


if __name__ == "__main__":
    main()
