#!/usr/bin/env python3
"""Counts false findings on texts that no model was trained on, one list of them changed, and true findings on members.

    cargo build --release
    python3 benches/verdict_attack.py TESTBED_DIR [--program target/release/pdr-audit] [--draws 60] [--row NAME ...]

TESTBED_DIR holds `model/` and `ref-model/` (the target, and a reference that never saw the members), `data/length{32,64,128}.jsonl`
(labelled texts, the same documents cut to so many words, words joined by one blank) and `data/length64-shift.jsonl` (of these the members
of one source and the non-members of the other). Each draw takes two lists of distinct non-members, changes one of them, and asks for six
verdicts: `ref`, `loss` and `min_k_plus_plus`, with and without the control. Then groups, documents of several texts, and lists at a false
discovery rate of 0.5. Exits with 1 if a row has more than 3 associations of 60 (2 for unchanged lists, in proportion to --draws), or the rows
of true members fewer than asked for.
"""
import argparse, json, math, pathlib, random, string, sys, textwrap
from collections import Counter
from service import Service

PRIMARIES = {"ref": {"name": "ref", "reference": "reference"}, "loss": "loss", "min_k_plus_plus": "min_k_plus_plus"}
HEADER = "Downloaded from the archive of the library. All rights reserved.\n\n"


def shuffled(text, generator, share):
    """A share of the words in random order, the others in place."""
    words = text.split(" ")
    places = generator.sample(range(len(words)), round(share * len(words)))
    moved = [words[place] for place in places]
    for place, word in zip(sorted(places), moved):
        words[place] = word
    return " ".join(words)


def misread(text, generator, share):
    """Letters replaced by others, as by optical character recognition."""
    letter = lambda old: generator.choice(string.ascii_lowercase) if old.isalpha() and generator.random() < share else old
    return "".join(map(letter, text))


CHANGES = {
    "unchanged": lambda text, generator: text,
    "two blanks": lambda text, generator: text.replace(" ", "  "),
    "wraps at 70": lambda text, generator: "\n".join(textwrap.wrap(text, 70)),
    "shuffled": lambda text, generator: shuffled(text, generator, 1.0),
    "20 % shuffled": lambda text, generator: shuffled(text, generator, 0.2),
    "no punctuation": lambda text, generator: text.translate(str.maketrans("", "", string.punctuation)),
    "lower case": lambda text, generator: text.lower(),
    "OCR 1 %": lambda text, generator: misread(text, generator, 0.01),
    "OCR 3 %": lambda text, generator: misread(text, generator, 0.03),
    "header": lambda text, generator: HEADER + text,
}


class Testbed:
    def __init__(self, directory):
        read = lambda name: [json.loads(line) for line in open(directory / "data" / name)]
        self.texts = {length: read(f"length{length}.jsonl") for length in (32, 64, 128)}
        chosen = self.chosen = {sample["text"] for sample in read("length64-shift.jsonl")}
        label = lambda place: self.texts[64][place]["label"]
        self.members = [place for place in range(len(self.texts[64])) if label(place)]
        self.others = [place for place in range(len(self.texts[64])) if not label(place)]
        # The file with a shift has the non-members of the second source.
        in_second = lambda place: self.texts[64][place]["text"] in chosen
        self.first_source = [place for place in self.others if not in_second(place)]
        self.second_source = [place for place in self.others if in_second(place)]

    def text(self, place, length=64):
        return self.texts[length][place]["text"]

    def rows(self):
        """By name the function that draws two lists, and the bounds of findings among 60 draws by primary and control."""
        def changed(change):
            def draw(generator):
                places = generator.sample(self.others, 200)
                return [self.text(p) for p in places[:100]], [change(self.text(p), generator) for p in places[100:]]
            return draw

        def start_against_middle(generator):
            places = generator.sample(self.others, 200)
            middle = lambda place: " ".join(self.text(place, 128).split(" ")[64:])
            return [self.text(p) for p in places[:100]], [middle(p) for p in places[100:]]

        def lengths(generator):
            places = generator.sample(self.others, 200)
            return [self.text(p) for p in places[:100]], [self.text(p, 32) for p in places[100:]]

        def mixed(share):
            def draw(generator):
                first, second = generator.sample(self.first_source, 100), generator.sample(self.second_source, 100)
                one = first[:share] + second[:100 - share]
                other = first[share:] + second[100 - share:]
                return [self.text(p) for p in one], [self.text(p) for p in other]
            return draw

        def members(count):
            def draw(generator):
                one, other = generator.sample(self.members, count), generator.sample(self.others, count)
                return [self.text(p) for p in one], [self.text(p) for p in other]
            return draw

        at_most = lambda bound: {(primary, control): (0, bound) for primary in PRIMARIES for control in (True, False)}
        rows = {name: (changed(change), at_most(2 if name == "unchanged" else 3)) for name, change in CHANGES.items()}
        rows["start against middle"] = (start_against_middle, at_most(3))
        rows["source against source"] = (mixed(100), at_most(3))
        rows["60/40 sources"] = (mixed(60), at_most(3))
        rows["64 against 32 words"] = (lengths, at_most(3))
        rows["members, 100 + 100"] = (members(100), {("ref", True): (45, 60)})
        rows["members, 200 + 200"] = (members(200), {(primary, True): (54, 60) for primary in PRIMARIES})
        return rows


def verdict(service, lists, primary, control):
    samples = [{"text": text, "label": label} for label, texts in zip((1, 0), lists) for text in texts]
    request = {
        "samples": samples,
        "methods": [PRIMARIES[primary]],
        "control": "reference" if control else None,
        "metrics": {"bootstrap": None},
    }
    audit = service.call("POST", "/v1/audits", request, prefer="wait=600")
    assert audit["status"] == "succeeded", f"{audit['status']}: {audit['error']}"
    return audit["results"]["verdict"]


def audited(service, samples, **options):
    request = {"samples": samples, "methods": [PRIMARIES["ref"]], "metrics": {"bootstrap": None}, **options}
    audit = service.call("POST", "/v1/audits", request, prefer="wait=600")
    assert audit["status"] == "succeeded", f"{audit['status']}: {audit['error']}"
    return audit["results"]["verdict"]["state"] == "association"


def designs(testbed, service):
    """By name the function that counts associations, how many draws it makes, and between which bounds the count must be."""
    in_first = set(testbed.texts[64][place]["text"] for place in testbed.members) & testbed.chosen

    def groups(seed):
        generator, samples = random.Random(f"groups {seed}"), []
        members = [[p for p in testbed.members if (testbed.text(p) in in_first) == first] for first in (True, False)]
        for group, lists in enumerate(zip(members, (testbed.first_source, testbed.second_source))):
            for label, places in zip((1, 0), lists):
                samples += [{"text": testbed.text(p), "label": label, "group": str(group)} for p in generator.sample(places, 100)]
        return audited(service, samples, control="reference", stratify="group")

    def documents(label):
        def draw(seed):
            places = random.Random(f"documents {seed}").sample(testbed.others, 320)
            several = [{"text": testbed.text(p), "label": label, "document": at // 8} for at, p in enumerate(places[:240])]
            single = [{"text": testbed.text(p), "label": 1 - label} for p in places[240:]]
            return audited(service, several + single, control="reference")
        return draw

    def lists(seed):
        places = random.Random(f"lists {seed}").sample(testbed.others, 400)
        known = {"samples": [{"text": testbed.text(p)} for p in places[:200]], "methods": [PRIMARIES["ref"]]}
        calibration = service.call("POST", "/v1/calibrations", known, prefer="wait=600")
        assert calibration["status"] == "succeeded", calibration["error"]
        found = audited(service, [{"text": testbed.text(p)} for p in places[200:]], calibration=calibration["id"], decisions={"fdr": 0.5})
        service.text("DELETE", f"/v1/calibrations/{calibration['id']}")
        return found

    return {
        "members, 200 + 200, two groups": (groups, 12, 11, 12),
        "documents of 8 members against single texts": (documents(1), 50, 0, 2),
        "documents of 8 non-members against single texts": (documents(0), 50, 0, 2),
        # One in a hundred, and two standard errors.
        "lists at a rate of 0.5, non-members": (lists, 200, 0, 4),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("testbed", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--program", default="target/release/pdr-audit")
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--row", action="append")
    arguments = parser.parse_args()
    source = lambda name: json.dumps(str(arguments.testbed / name))
    config = f"""
        engine.default_model = "target"
        engine.cache = "2GiB"
        [[models]]
        id = "target"
        source = {source("model")}
        reference = "reference"
        [[models]]
        id = "reference"
        source = {source("ref-model")}
    """
    columns = [(primary, control) for control in (True, False) for primary in PRIMARIES]
    print(f"{'associations of ' + str(arguments.draws) + ' draws':26}" + "".join(
        f"{primary + ('' if control else ', alone'):>24}" for primary, control in columns))
    failed = []
    with Service(arguments.program, config) as service:
        service.wait(lambda: service.call("GET", "/readyz")["ready"])
        for name, (draw, bounds) in Testbed(arguments.testbed).rows().items():
            if arguments.row and name not in arguments.row:
                continue
            counts, reasons = Counter(), Counter()
            for seed in range(arguments.draws):
                lists = draw(random.Random(f"{name} {seed}"))
                for column in columns:
                    answer = verdict(service, lists, *column)
                    counts[column] += answer["state"] == "association"
                    reasons[answer["reason"]] += 1
            print(f"{name:26}" + "".join(f"{counts[column]:24}" for column in columns), flush=True)
            print(f"{'':26}  " + ", ".join(f"{reason} {count}" for reason, count in reasons.most_common()), flush=True)
            scale = arguments.draws / 60
            for column, (fewest, most) in bounds.items():
                if not math.floor(fewest * scale) <= counts[column] <= math.ceil(most * scale):
                    failed.append(f"{name}, {column[0]}, {'with' if column[1] else 'without'} control: {counts[column]}")
        for name, (draw, draws, fewest, most) in designs(Testbed(arguments.testbed), service).items():
            if arguments.row and name not in arguments.row:
                continue
            count = sum(draw(seed) for seed in range(draws))
            print(f"{name:50} {count} of {draws}", flush=True)
            if not fewest <= count <= most:
                failed.append(f"{name}: {count} of {draws}")
    print("all hold" if not failed else "FAILED: " + "; ".join(failed))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
