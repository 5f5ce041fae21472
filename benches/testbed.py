#!/usr/bin/env python3
"""Compares whole audits with independently computed results: one request to the service for each length of text.

    cargo build --release
    python3 benches/testbed.py TESTBED_DIR [--program target/release/pdr-audit] [--auroc 0.002] [--rate 0.005] [--bootstrap 0.003]

TESTBED_DIR holds `model/` and `ref-model/` (checkpoints), `data/length{32,64,128}.jsonl` (labelled texts) and, from PyTorch,
transformers and scikit-learn, `results.json` (by length and score), `scores_length*.csv` (by text) and `bootstrap_indices.u16le`
(the draws). For each length, every score of the table is requested at once, and then once more with the preset of the paper.

The tolerances: f32 rounding may swap the order of a few of the 160,000 pairs of a member and a non-member, each worth 6e-6 of AUROC;
rates change in steps of one sample, here 1/400, and `--rate` is two of them; a score may differ as much as from transformers,
1e-4 + 1e-3 |x|. The service draws other samples than the table did, so the results of the two bootstraps differ by chance. By how much is
known: one standard deviation of the difference is sqrt(2 p (1 - p) / N) for shares of N draws and sqrt(2 / N) of a replicate's
for means, and more than four are too many. So that chance hides nothing, the table's own draws are repeated on our scores ("same draws");
there, more than 1e-4 is too much, and for a p-value two replicates, since one swapped pair may change one. If `--bootstrap` is exceeded,
but four deviations are not and the same draws agree, the difference is listed as caused by chance. Exits with 1 if any other tolerance is
exceeded.
"""
import argparse, array, csv, io, json, math, pathlib, statistics, sys
from bisect import bisect_right
from collections import defaultdict
from itertools import accumulate
from operator import itemgetter, mul
from service import Service

NAMES = {"loss": "loss", "zlib": "zlib", "lowercase": "lowercase", "ref": "ref", "mink": "min_k", "mink++": "min_k_plus_plus"}
BASES = {name: base for base, name in NAMES.items()}
# Not part of a column's name: both use the linear decay with alpha 1.
ABLATIONS = {
    "reverse": {"decay": "reverse", "family": "linear", "alpha": 1.0},
    "before": {"decay": "linear", "alpha": 1.0, "select": "before"},
}
# The printed columns with their widths and sub-columns.
HEADINGS = [
    ("AUROC", 8, ("table", "ours")),
    *((rate, 7, ("table", "ours")) for rate in ("TPR at 5 %", "TPR at 0.5 %", "FPR at 95 %")),
    ("mean delta", 8, ("table", "ours")),
    ("p", 7, ("table", "ours")),
    ("p, same draws", 7, ("< 0", "<= 0")),
]

# The maximum difference between statistics of the same draws.
SAME_DRAWS = 1e-4


def method(column):
    """The request for a column of the table such as `mink|linear|1.0`."""
    base, _, weighting = column.partition("|")
    decay, _, alpha = weighting.partition("|")
    request = {"name": NAMES[base], "label": column}
    if base.startswith("mink"):
        request["k"] = 0.2
    if weighting:
        request["pdr"] = ABLATIONS.get(decay) or {"decay": decay, **({"alpha": float(alpha)} if alpha else {})}
    return request


def column_name(row):
    """The column of the table that a row of a response for the preset belongs to."""
    pdr = row.get("pdr", {})
    return "|".join(str(part) for part in (BASES[row["name"]], pdr.get("decay"), pdr.get("alpha")) if part is not None)


class Differences:
    """The largest difference of each kind, and the differences that exceed their tolerance."""

    def __init__(self):
        self.worst, self.exceeded, self.by_chance = {}, [], []

    def add(self, kind, where, want, got, tolerance, chance=0.0):
        """`chance`: a difference up to this size that exceeds the tolerance is listed separately."""
        difference = abs(got - want)
        self.worst[kind] = max(self.worst.get(kind, (-1,)), (difference, tolerance, where))
        if difference > tolerance * (1 + 1e-9):
            line = f"{kind}, {where}: {got:.6g} instead of {want:.6g}, tolerance {tolerance:.2g}"
            if difference <= chance:
                self.by_chance.append(f"{line}, four deviations are {chance:.2g}")
            else:
                self.exceeded.append(line)

    def report(self):
        print(f"\n{'worst of':36} {'difference':>10} {'tolerance':>10}  where")
        for kind, (difference, tolerance, where) in self.worst.items():
            print(f"{kind:36} {difference:10.2g} {tolerance:10.2g}  {where}")
        if self.by_chance:
            print("\n" + "\n".join(["exceeded by chance (the same draws agree):", *self.by_chance]))
        print("\n" + "\n".join(["exceeded:", *self.exceeded] if self.exceeded else ["no other tolerance is exceeded"]))
        return int(bool(self.exceeded))


class Draws:
    """The table's replicates: how often each draws each member and each non-member."""

    def __init__(self, path, labels):
        indices = array.array("H", path.read_bytes())
        if sys.byteorder == "big":
            indices.byteswap()
        self.size, self.drawn = len(labels), []
        for start in range(0, len(indices), self.size):
            times = [0] * self.size
            for index in indices[start : start + self.size]:
                times[index] += 1
            self.drawn.append((list(map(mul, times, labels)), [t * (1 - label) for t, label in zip(times, labels)]))

    def replicates(self, scores):
        """For each replicate: how many pairs are in the wrong order, how many pairs there are, and the true positive rate at 0.5 %;
        for scores without ties."""
        assert len(set(scores)) == self.size, "two texts have the same score"
        ranked = itemgetter(*sorted(range(self.size), key=lambda index: -scores[index]))
        wrong, pairs, rates = [], [], []
        for members, non_members in self.drawn:
            hits, false = ranked(members), list(accumulate(ranked(non_members)))
            positives, negatives = sum(hits), false[-1]
            wrong.append(sum(map(mul, hits, false)))
            pairs.append(positives * negatives)
            rates.append(sum(hits[: bisect_right(false, 0.005 * negatives)]) / positives)
        return wrong, pairs, rates


def noise_of_share(p, q, replicates):
    """One standard deviation of the difference of two shares of that many draws each; shares are kept half a draw away from 0 and 1."""
    p = min(max((p + q) / 2, 0.5 / replicates), 1 - 0.5 / replicates)
    return math.sqrt(2 * p * (1 - p) / replicates)


def noise(values):
    """One standard deviation of the difference of two means, and of two standard deviations, of as many values as these."""
    mean, variance, count = statistics.fmean(values), statistics.pvariance(values), len(values)
    fourth = statistics.fmean((value - mean) ** 4 for value in values)
    return math.sqrt(2 * variance / count), math.sqrt(2 * (fourth / variance - variance) / (4 * count)) if variance else 0.0


def summary(row):
    """Our results for a method under the table's names."""
    rate = {point["fpr"]: point["tpr"] for point in row["tpr_at_fpr"]}
    return {"auroc": row["auroc"], "tpr_at_5fpr": rate[0.05], "tpr_at_0_5fpr": rate[0.005], "fpr_at_95tpr": row["fpr_at_95_tpr"]}


def spread(row):
    """Our bootstrap under the table's names."""
    rate = next(point for point in row["bootstrap"]["tpr_at_fpr"] if point["fpr"] == 0.005)
    statistics_by_kind = {"auroc": row["bootstrap"]["auroc"], "tpr05": rate}
    both = (("mean", "mean"), ("std", "standard_deviation"))
    return {f"{kind}_{theirs}": summary[ours] for kind, summary in statistics_by_kind.items() for theirs, ours in both}


class Check:
    """One length of text."""

    def __init__(self, testbed, length, table, tolerances, differences):
        self.testbed, self.length, self.table, self.tolerances, self.differences = testbed, length, table, tolerances, differences
        lines = (testbed / "data" / f"length{length}.jsonl").read_text().splitlines()
        self.samples = [json.loads(line) for line in lines]
        with open(testbed / f"scores_length{length}.csv", newline="") as file:
            self.scores = list(csv.DictReader(file))

    def add(self, kind, where, *numbers):
        self.differences.add(kind, f"{where} at {self.length}", *numbers)

    def audit(self, service, methods):
        audit = service.call("POST", "/v1/audits", {"samples": self.samples, "methods": methods}, prefer="wait=600")
        assert audit["status"] == "succeeded", f"{audit['status']}: {audit['error']}"
        return audit

    def every_column(self, service):
        audit = self.audit(service, [method(column) for column in self.table["results"]])
        ours = self.per_text(service.text("GET", f"/v1/audits/{audit['id']}/scores", accept="text/csv"))
        self.profile(audit["results"]["position_profile"])
        draws = Draws(self.testbed / "bootstrap_indices.u16le", [sample["label"] for sample in self.samples])
        rows = {row["label"]: row for row in audit["results"]["methods"]}
        print(f"\n{self.length} words, {len(self.samples)} texts, {len(rows)} scores\n")
        print(f"{'':24} " + "".join(f"|{title:^{2 * width + 1}}" for title, width, _ in HEADINGS).rstrip())
        print(f"{'score':24} " + "".join(f"|{first:>{width}}{second:>{width}} " for _, width, (first, second) in HEADINGS).rstrip())
        same = {column: draws.replicates(ours[column]) for column in rows}
        for column, row in rows.items():
            print(self.line(column, row, rows[column.partition("|")[0]], same).rstrip())

    def line(self, column, row, base, same):
        want, got = self.table["results"][column], summary(row)
        for kind in got:
            self.add(kind, column, want[kind], got[kind], self.tolerances[kind])
        cells = [f"|{want[kind]:{width}.4f}{got[kind]:{width}.4f} " for kind, width in zip(got, (8, 7, 7, 7))]
        theirs, mine = want["bootstrap"], spread(row)
        wrong, pairs, rates = same[column]
        aurocs = [1 - wrong / pairs for wrong, pairs in zip(wrong, pairs)]
        again = {"auroc": aurocs, "tpr05": rates}
        for kind, values in again.items():
            for statistic, function, chance in zip(("mean", "std"), (statistics.fmean, statistics.pstdev), noise(values)):
                self.resampled(f"{kind}_{statistic}", column, theirs, mine, function(values), 4 * chance)
        if "versus_baseline" in row:
            base_wrong = same[column.partition("|")[0]][0]
            deltas = [(base - method) / pairs for base, method, pairs in zip(base_wrong, wrong, pairs)]
            mine["delta_mean"] = mine["auroc_mean"] - spread(base)["auroc_mean"]
            self.resampled("delta_mean", column, theirs, mine, statistics.fmean(deltas), 4 * noise(deltas)[0])
            cells += [f"|{theirs['delta_mean']:8.4f}{mine['delta_mean']:8.4f} ", self.p_values(column, theirs, row, deltas)]
        return f"{column:24} " + "".join(cells)

    def resampled(self, kind, column, theirs, mine, again, chance):
        """A statistic of the bootstrap, ours and then that of the table's draws."""
        agrees = abs(again - theirs[kind]) <= SAME_DRAWS
        self.add(f"bootstrap {kind}", column, theirs[kind], mine[kind], self.tolerances["bootstrap"], chance if agrees else 0.0)
        self.add(f"bootstrap {kind}, same draws", column, theirs[kind], again, SAME_DRAWS)

    def p_values(self, column, theirs, row, deltas):
        """In floating point, a difference of exactly 0 may be slightly positive, as it is with scikit-learn: with such
        replicates, the table's p-value lies between the share below 0 and the share of 0 and below."""
        p, ours, count = theirs["p_value_vs_base"], row["versus_baseline"]["p_value_raw"], len(deltas)
        below, at_most = (sum(map(test, deltas)) / count for test in (lambda delta: delta < 0, lambda delta: delta <= 0))
        self.add("p", column, p, ours, 4 * noise_of_share(p, ours, count))
        self.add("p, same draws", column, p, min(max(p, below), at_most), 2 / count)
        return f"|{p:7.3f}{ours:7.3f} |{below:7.3f}{at_most:7.3f}"

    def per_text(self, answer):
        """Our scores by column, after comparing each with the table's."""
        ours = list(csv.DictReader(io.StringIO(answer)))
        columns = defaultdict(list)
        for want, got in zip(self.scores, ours, strict=True):
            self.add("scored tokens", f"text {got['index']}", float(want["T"]), float(got["scored_tokens"]), 1e-9)
            for column in self.table["results"]:
                score, reference = float(got[column]), float(want[column])
                columns[column].append(score)
                self.add(f"score {column}", f"text {got['index']}", reference, score, 1e-4 + 1e-3 * abs(reference))
        return columns

    def profile(self, rows):
        for kind, ours in (("member", "members"), ("nonmember", "non_members")):
            for want, row in zip(self.table["position_profile"][kind], rows):
                self.add("mean log-probability of a position", f"{kind} {row['position']}", want, row[ours]["mean_lp"], 1e-4)
        gaps = [row["members"]["mean_lp"] - row["non_members"]["mean_lp"] for row in rows[:40]]
        tens = ", ".join(f"{statistics.fmean(gaps[start:start + 10]):.3f}" for start in range(0, 40, 10))
        print(f"\nmembers minus non-members by ten positions: {tens} nats")

    def preset(self, service):
        """The preset of the paper: its rows include those listed in the table's `paper_settings`."""
        rows = self.audit(service, [{"preset": "paper_wikimia", "length": int(self.length)}])["results"]["methods"]
        named = {column for columns in self.table["paper_settings"].values() for column in columns.values()}
        wanted = set(NAMES) | named | {f"{base}|slope" for base in ("loss", "ref", "mink", "mink++")}
        assert {column_name(row) for row in rows} == wanted, {column_name(row) for row in rows} ^ wanted
        for row in rows:
            for kind, got in summary(row).items():
                column = column_name(row)
                self.add(f"{kind} of the preset", column, self.table["results"][column][kind], got, self.tolerances[kind])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("testbed", type=pathlib.Path)
    parser.add_argument("--program", default="target/release/pdr-audit")
    parser.add_argument("--auroc", type=float, default=0.002)
    parser.add_argument("--rate", type=float, default=0.005)
    parser.add_argument("--bootstrap", type=float, default=0.003)
    arguments = parser.parse_args()
    tolerances = {"auroc": arguments.auroc, "bootstrap": arguments.bootstrap}
    tolerances |= dict.fromkeys(("tpr_at_5fpr", "tpr_at_0_5fpr", "fpr_at_95tpr"), arguments.rate)
    source = lambda name: json.dumps(str((arguments.testbed / name).resolve()))
    config = f"""
        engine.default_model = "testbed"
        [[models]]
        id = "testbed"
        source = {source("model")}
        reference = "ref-model"
        [[models]]
        id = "ref-model"
        source = {source("ref-model")}
    """
    differences = Differences()
    with Service(arguments.program, config) as service:
        service.wait(lambda: service.call("GET", "/readyz")["ready"])
        for length, table in json.loads((arguments.testbed / "results.json").read_text()).items():
            check = Check(arguments.testbed, length, table, tolerances, differences)
            check.every_column(service)
            check.preset(service)
    return differences.report()


if __name__ == "__main__":
    sys.exit(main())
