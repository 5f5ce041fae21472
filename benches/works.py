"""Works on a model whose training data is known: how often member works are listed, and non-member ones.

    python3 benches/works.py PROGRAM TESTBED [DRAWS]

TESTBED has `model`, `ref-model` and `data/length128.jsonl` with texts of 128 words and their labels. A work is a text, cut into passages
of 16 words. Each draw tests 40 member and 40 non-member works against 100 known non-member ones: the list at a false discovery rate of
0.1, by Benjamini and Hochberg, computed here from the scores of the program. The first draw is also an audit of the program, whose
works must be the same. Then lengths: long non-member works against short known ones must not be found.
"""

import json
import random
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

METHODS = ["loss", "min_k_plus_plus", "ref"]
TESTED, KNOWN, FDR, LEVEL = 40, 100, 0.1, 0.01


def run(*arguments):
    return subprocess.run([str(argument) for argument in arguments], check=True, capture_output=True, text=True).stdout


def mean_scores(works):
    """The mean of each work over as many passages as the shortest has, those with the smallest digests."""
    fewest = min(len(work) for work in works)
    return [sum(score for _, score in sorted(work)[:fewest]) / fewest for work in works]


def p_values(tested, known):
    return [(1 + sum(other >= score for other in known)) / (1 + len(known)) for score in tested]


def listed(values):
    """Benjamini and Hochberg."""
    order = sorted(range(len(values)), key=lambda place: values[place])
    last = max((rank for rank, place in enumerate(order, 1) if values[place] <= FDR * rank / len(values)), default=0)
    return set(order[:last])


def compared_with_the_program(program, model, texts, tested, known, label):
    """The works of one draw, by an audit."""
    with tempfile.TemporaryDirectory() as folder:
        for name, chosen in [("tested", tested), ("known", known)]:
            lines = (json.dumps({"id": str(place), "text": texts[place]}) + "\n" for place in chosen)
            Path(folder, f"{name}.jsonl").write_text("".join(lines))
        audit = run(program, "audit", f"{folder}/tested.jsonl", "--calibration", f"{folder}/known.jsonl", "--cut", 16,
                    "--methods", label.split("(")[0], "--format", "json", *model)
    return {int(work["document"]): (work["p_value"], work["listed"]) for work in json.loads(audit)["works"]}


def main(program, testbed, draws=200):
    testbed, draws = Path(testbed), int(draws)
    texts = [json.loads(line) for line in open(testbed / "data/length128.jsonl")]
    labels, texts = [text["label"] for text in texts], [text["text"] for text in texts]
    model = ["--model", testbed / "model", "--reference", testbed / "ref-model", "--dtype", "f32"]
    works = defaultdict(lambda: defaultdict(list))
    with tempfile.TemporaryDirectory() as folder:
        samples = Path(folder, "samples.jsonl")
        samples.write_text("".join(json.dumps({"id": str(place), "text": text}) + "\n" for place, text in enumerate(texts)))
        scores = Path(folder, "scores.ndjson")
        run(program, "audit", samples, "--cut", 16, "--methods", ",".join(METHODS), "--scores", scores, "--format", "json", *model)
        for line in map(json.loads, open(scores)):
            for label, score in line["scores"].items():
                works[label][int(line["document"])].append((line["text_digest"], score))
    pools = {member: [place for place, label in enumerate(labels) if label == member] for member in (1, 0)}
    print(f"{draws} draws of {TESTED} + {TESTED} works of 8 passages against {KNOWN} known ones, list at {FDR}\n")
    print("| method | listed of the member works | false discovery proportion, mean | draws with a list |\n|---|---|---|---|")
    for label, by_work in works.items():
        power, proportions, lists = [], [], 0
        for draw in range(draws):
            drawn = random.Random(draw)
            members, others = drawn.sample(pools[1], TESTED), drawn.sample(pools[0], TESTED + KNOWN)
            tested, known = members + others[:TESTED], others[TESTED:]
            means = mean_scores([by_work[place] for place in tested + known])
            values = p_values(means[:2 * TESTED], means[2 * TESTED:])
            found = listed(values)
            if draw == 0:
                program_works = compared_with_the_program(program, model, texts, tested, known, label)
                ours = {place: (values[index], index in found) for index, place in enumerate(tested)}
                assert len(program_works) == len(ours), (len(program_works), len(ours))
                for place, (value, is_listed) in ours.items():
                    assert abs(program_works[place][0] - value) < 1e-9 and program_works[place][1] == is_listed, place
            false = sum(place >= TESTED for place in found)
            power.append((len(found) - false) / TESTED)
            proportions.append(false / max(1, len(found)))
            lists += bool(found)
        average = [sum(numbers) / draws for numbers in (power, proportions)]
        print(f"| {label} | {average[0]:.1%} | {average[1]:.3f} | {lists} |")
    print("\n| method | long non-member works (8 passages) with p <= 0.01 against short known ones (2) | 1 % + 2 s.e. |\n|---|---|---|")
    for label, by_work in works.items():
        rates = []
        for draw in range(draws):
            others = random.Random(draw).sample(pools[0], TESTED + KNOWN)
            long = [sorted(by_work[place])[:8] for place in others[:TESTED]]
            short = [sorted(by_work[place])[:2] for place in others[TESTED:]]
            means = mean_scores(long + short)
            rates.append(sum(value <= LEVEL for value in p_values(means[:TESTED], means[TESTED:])) / TESTED)
        # Works of one draw share their known works, so that draws are independent and works are not.
        bound = LEVEL + 2 * statistics.stdev(rates) / draws**0.5
        assert statistics.mean(rates) <= bound, (label, statistics.mean(rates), bound)
        print(f"| {label} | {statistics.mean(rates):.2%} | {bound:.2%} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
