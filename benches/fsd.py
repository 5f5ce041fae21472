#!/usr/bin/env python3
"""Compares FSD with independently computed results: adapters that PEFT tuned, and adapters that are tuned here.

    cargo build --release
    python3 benches/fsd.py TESTBED_DIR [--program target/release/pdr-audit] [--only saved|tuned]

TESTBED_DIR holds `model/` (a checkpoint), `data/length64{,-shift}.jsonl` (labelled texts), and in `fsd/` and `fsd-shift/` what PEFT and
transformers made of them: `adapter-L*-seed42/`, `scores-L*-seed*.csv` (scores before and after tuning, by text) and `results.json`
(by length and seed: which texts were tuned on, which were tested, AUROC).

`saved`: every score under the adapters that PEFT saved, within 1e-3 (log-probabilities of f32 forward passes differ by some 1e-5; a score
of min_k moves more where rounding swaps the last selected token).
`tuned`: `pdr-audit finetune` on the same texts with the same settings and seeds 42, 43 and 44. Order, first values and dropped inputs are
others than PyTorch's, so single scores differ; the mean AUROC over the seeds must be within 0.03 of the reference. Exits with 1 if
a tolerance is exceeded.
"""
import argparse, csv, json, pathlib, statistics, subprocess, sys, tempfile, time

SEEDS = (42, 43, 44)
BASES = {"loss": {"name": "loss"}, "mink": {"name": "min_k", "k": 0.2}, "mink++": {"name": "min_k_plus_plus", "k": 0.2}}
LINEAR = {"decay": "linear", "alpha": 1.0}
COLUMNS = {name + suffix: {**base, **pdr} for name, base in BASES.items() for suffix, pdr in (("", {}), ("|LPDR", {"pdr": LINEAR}))}
SCORE_TOLERANCE, AUROC_TOLERANCE = 1e-3, 0.03


def run(program, *arguments):
    result = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, arguments))}: {result.stderr}")
    return result


def scores(program, model, adapter, texts):
    """By text, each column's score before tuning and by how much it changes."""
    methods = []
    for label, score in COLUMNS.items():
        methods += [{**score, "label": label}, {"name": "fsd", "adapter": "tuned", "score": score, "label": f"fsd {label}"}]
    out = run(program, "score", texts, "--model", model, "--adapter", f"tuned={adapter}", "--methods", json.dumps(methods))
    return [json.loads(line)["scores"] for line in out.stdout.splitlines()]


def auroc(values, labels):
    members = [value for value, label in zip(values, labels) if label]
    others = [value for value, label in zip(values, labels) if not label]
    wins = sum((a > b) + 0.5 * (a == b) for a in members for b in others)
    return wins / (len(members) * len(others))


def saved(program, testbed):
    worst = 0.0
    for folder, length in (("fsd", 64), ("fsd", 128), ("fsd-shift", 64)):
        shift = "-shift" if folder.endswith("shift") else ""
        texts = testbed / f"data/length{length}{shift}.jsonl"
        ours = scores(program, testbed / "model", testbed / folder / f"adapter-L{length}-seed42", texts)
        rows = list(csv.DictReader(open(testbed / folder / f"scores-L{length}-seed42.csv")))
        for name in COLUMNS:
            differences = [float(row[f"base:{name}"]) - float(row[f"ft:{name}"]) - ours[int(row["index"])][f"fsd {name}"] for row in rows]
            most = max(map(abs, differences))
            worst = max(worst, most)
            print(f"{folder} {length} {name:12} {len(rows)} texts, largest difference {most:.1e}")
    return worst <= SCORE_TOLERANCE


def tuned(program, testbed):
    good = True
    for folder, length in (("fsd", 64), ("fsd-shift", 64)):
        shift = "-shift" if folder.endswith("shift") else ""
        texts = testbed / f"data/length{length}{shift}.jsonl"
        lines = open(texts).read().splitlines()
        labels = [json.loads(line)["label"] for line in lines]
        reference = json.load(open(testbed / folder / "results.json"))[str(length)]
        areas = {name: ([], []) for name in COLUMNS}
        for seed in SEEDS:
            chosen = reference[str(seed)]
            left_out = set(chosen["sampled_indices"])
            rest = [index for index in range(len(lines)) if index not in left_out]
            with tempfile.TemporaryDirectory() as scratch:
                tuning, adapter = pathlib.Path(scratch) / "tuning.jsonl", pathlib.Path(scratch) / "tuned"
                tuning.write_text("\n".join(lines[index] for index in chosen["finetune_indices"]) + "\n")
                began = time.time()
                said = run(program, "finetune", tuning, "--model", testbed / "model", "--output", adapter, "--seed", seed).stderr
                print(f"{folder} {length} seed {seed}: {said.strip().splitlines()[-1].rsplit(';', 1)[0]}, {time.time() - began:.1f} s")
                ours = scores(program, testbed / "model", adapter, texts)
            for name in COLUMNS:
                for column, place in ((name, 0), (f"fsd {name}", 1)):
                    areas[name][place].append(auroc([ours[i][column] for i in rest], [labels[i] for i in rest]))
        for name, (base, fsd) in areas.items():
            expected = reference["mean_std_auroc"][name]
            mean, deviation = statistics.mean(fsd), statistics.stdev(fsd)
            before, after = ("{:.3f} +- {:.3f}".format(*expected[which]) for which in ("base", "fsd"))
            ours = f"base {statistics.mean(base):.3f}, fsd {mean:.3f} +- {deviation:.3f}"
            within = abs(mean - expected["fsd"][0]) <= AUROC_TOLERANCE
            good &= within
            print(f"{folder} {length} {name:12} {ours}; reference {before}, {after}{'' if within else '  BEYOND THE TOLERANCE'}")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("testbed", type=pathlib.Path)
    parser.add_argument("--program", default="target/release/pdr-audit")
    parser.add_argument("--only", choices=("saved", "tuned"))
    arguments = parser.parse_args()
    checks = {"saved": saved, "tuned": tuned}
    results = [check(arguments.program, arguments.testbed) for name, check in checks.items() if arguments.only in (None, name)]
    sys.exit(not all(results))


main()
