#!/usr/bin/env python3
"""Checks verdicts, lists and tests against numbers that were computed elsewhere, on a model with known members.

    cargo build --release
    python3 benches/verdict.py TESTBED_DIR [--program target/release/pdr-audit] [--draws 400]

TESTBED_DIR holds `model/` and `ref-model/` (the target, and a reference that never saw the members), `data/length64.jsonl` (labelled
texts, half of each class from Wikipedia and half from PubMed) and `data/length64-shift.jsonl` (of these the members from Wikipedia and
the non-members from PubMed). A service runs both models; all audits go to it, so that a text is run through a model once. Prints each number beside the known one and exits with 1 if
one is further away than its tolerance.
"""
import argparse, json, math, pathlib, random, socket, subprocess, sys, tempfile, time, urllib.request

METHODS = ["ref", "loss", "zlib", "lowercase", "min_k", "min_k_plus_plus"]
REF, MIN_K_PLUS_PLUS = "ref(reference=reference)", "min_k_plus_plus(k=0.2)"
failed = []


def check(name, value, known, tolerance):
    good = abs(value - known) <= tolerance
    if not good:
        failed.append(name)
    print(f"{name:58} {value:+.3f}  known {known:+.3f} +- {tolerance:.3f}  {'ok' if good else 'FAILED'}", flush=True)


def expect(name, value, allowed):
    if value not in allowed:
        failed.append(name)
    print(f"{name:58} {value}  expected {' or '.join(allowed)}  {'ok' if value in allowed else 'FAILED'}", flush=True)


class Service:
    def __init__(self, program, testbed, directory):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        settings = directory / "settings.toml"
        settings.write_text(
            f'[server]\nport = {self.port}\n[engine]\ndefault_model = "target"\ncache = "2GiB"\n'
            f'[[models]]\nid = "target"\nsource = "{testbed}/model"\nreference = "reference"\n'
            f'[[models]]\nid = "reference"\nsource = "{testbed}/ref-model"\n'
        )
        self.process = subprocess.Popen([program, "serve", "--config", settings], stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz").read()
                return
            except OSError:
                time.sleep(0.1)
        sys.exit("the service is not ready")

    def call(self, path, body=None, accept="application/json"):
        headers = {"content-type": "application/json", "prefer": "wait=600", "accept": accept}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=data, headers=headers)
        with urllib.request.urlopen(request) as answer:
            return answer.read()

    def audit(self, samples, **options):
        audit = json.loads(self.call("/v1/audits", {"samples": samples, "metrics": {"bootstrap": None}, **options}))
        if audit["status"] != "succeeded":
            sys.exit(f"an audit has {audit['status']}: {audit['error']}")
        return audit


def method(audit, label):
    return next(method for method in audit["results"]["methods"] if method["label"] == label)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("testbed", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--program", default="target/release/pdr-audit")
    parser.add_argument("--draws", type=int, default=400)
    arguments = parser.parse_args()
    read = lambda name: [json.loads(line) for line in open(arguments.testbed / "data" / name)]
    texts, shifted = read("length64.jsonl"), read("length64-shift.jsonl")
    # The file with a shift has the members of the one source and the non-members of the other.
    chosen = {sample["text"] for sample in shifted}
    source = lambda sample: "wikipedia" if (sample["text"] in chosen) == bool(sample["label"]) else "pubmed"
    samples = [{"text": sample["text"], "label": sample["label"], "group": source(sample)} for sample in texts]
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch)
        service = Service(arguments.program, arguments.testbed, directory)
        try:
            audits(service, samples, shifted)
            scores = scores_of(service, samples)
        finally:
            service.process.terminate()
        file = directory / "scores.json"
        file.write_text(json.dumps(scores))
        simulated(file, arguments.draws)
    print("all hold" if not failed else f"FAILED: {', '.join(failed)}")
    return int(bool(failed))


def audits(service, samples, shifted):
    whole = service.audit(samples, methods=METHODS)
    expect("verdict on the texts of one source, with control", whole["results"]["verdict"]["state"], ["association"])
    prior = whole["results"]["prior_test"]
    check("positions of the test of PDR's prior", prior["positions"], 89, 0)
    check("early gap, nats", prior["early_gap"], 0.220, 0.0006)
    check("late gap, nats", prior["late_gap"], 0.197, 0.0006)
    check("its p-value", prior["p_value"], 0.275, 0.06)
    plain = [{"text": sample["text"], "label": sample["label"]} for sample in shifted]
    without = service.audit(plain, methods=["min_k_plus_plus"], control=None)
    expect("verdict on two sources, without control", without["results"]["verdict"]["reason"], ["lists_differ"])
    expect("the same with control", service.audit(plain, methods=METHODS)["results"]["verdict"]["reason"], ["lists_differ"])

    generator = random.Random(0)
    of = {(label, source): [s for s in samples if s["label"] == label and s["group"] == source]
          for label in (0, 1) for source in ("wikipedia", "pubmed")}
    # Of 150 members so many are from Wikipedia, and of 150 non-members the others are. Mean of ten draws.
    for share, words, difference in ((0.5, 0.550, 0.148), (0.7, 0.637, 0.154), (0.9, 0.897, 0.160), (1.0, 0.984, 0.158)):
        many, few = round(150 * share), 150 - round(150 * share)
        differences, blind = [], []
        for _ in range(10):
            # Without the groups, within which lists of two sources have no pair.
            chosen = [{"text": sample["text"], "label": label} for label, counts in ((1, (many, few)), (0, (few, many)))
                      for source, count in zip(("wikipedia", "pubmed"), counts)
                      for sample in generator.sample(of[label, source], count)]
            audit = service.audit(chosen, methods=["loss"], primary="loss")
            differences.append(method(audit, "loss")["control"]["difference"])
            blind.append(audit["results"]["blind"]["words"]["auroc"])
        # The known number is of one draw: two of its standard errors.
        check(f"words, share {share}", sum(blind) / 10, words, 0.065)
        check(f"loss less control, share {share}", sum(differences) / 10, difference, 0.03)
    negative = method(whole, "loss")["control"]["negative_controls"][0]
    sign = 1 if negative["groups"][0] == "wikipedia" else -1
    check("negative control of loss: Wikipedia against PubMed", sign * negative["difference"], 0.003, 0.03)

    others = [sample for sample in samples if sample["label"] == 0]
    wrong = 0
    for draw in range(100):
        shuffled = generator.sample(others, len(others))
        half = [{"text": sample["text"], "label": int(place < 200)} for place, sample in enumerate(shuffled)]
        wrong += service.audit(half, methods=["ref"])["results"]["verdict"]["state"] == "association"
    check("associations among 100 draws of non-members against non-members", wrong, 0, 5)


def scores_of(service, samples):
    audit = service.audit(samples, methods=METHODS, control=None)
    lines = service.call(f"/v1/audits/{audit['id']}/scores", accept="application/x-ndjson").splitlines()
    rows = [json.loads(line)["scores"] for line in lines]
    return {"labels": [sample["label"] for sample in samples], "scores": {label: [row[label] for row in rows] for label in rows[0]}}


def at_least(count, draws, share):
    """The probability of so many or more of `draws` at this share."""
    return sum(math.comb(draws, k) * share**k * (1 - share) ** (draws - k) for k in range(count, draws + 1))


def simulated(file, draws):
    command = ["cargo", "bench", "--quiet", "--bench", "verdict", "--", str(file), "--draws", str(draws)]
    results = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    # The reference has standard errors of its own, those of 400 draws.
    for procedure, fdp, power in (("bh", 0.031, 0.257), ("storey", 0.070, 0.578)):
        lists = results[REF]["lists"][procedure]
        for name, known in (("fdp", fdp), ("power", power)):
            value, error = lists[name]
            check(f"{procedure}: {name} at 0.1, ref", value, known, 2 * 2**0.5 * error)
    check("by: power at 0.1, ref", results[REF]["lists"]["by"]["power"][0], 0.0, 0.02)
    # 400 draws: two standard errors of a share of 0.05.
    slack = 2 * (0.05 * 0.95 / draws) ** 0.5
    # Of some 300 shares some are high by chance: together one in a hundred runs has one that counts.
    cells, count = {}, sum(len(results[label].get("rejections", [])) for label in results)
    for label in results:
        for row in results[label].get("rejections", []):
            cells.setdefault((row["test"], row["side"], row["level"]), []).append((label, row["null"], row["power"]))
            if at_least(round(row["null"] * draws), draws, row["level"]) < 0.01 / count:
                failed.append(f"type I error of {row['test']}, {row['side']} a side, {label}")
    print(f"\n{'':10} {'a side':>7} {'level':>6}  type I error, all methods (highest)   power of loss, min_k++, ref")
    for (test, side, level), shares in sorted(cells.items()):
        nulls, powers = [null for _, null, _ in shares], {label: power for label, _, power in shares}
        named = "  ".join(f"{powers[label]:.2f}" for label in ("loss", MIN_K_PLUS_PLUS, REF))
        print(f"{test:10} {side:7} {level:6}  {sum(nulls) / len(nulls):.3f} ({max(nulls):.3f}){'':18} {named}")
    for label, side, known in ((REF, 10, 0.65), (REF, 25, 1.0), (MIN_K_PLUS_PLUS, 50, 0.88), ("loss", 100, 0.99)):
        check(f"power of the dataset test, {side} a side, {label}", results[label]["power"][str(side)], known, 0.07)
    best = results["best_of_all"]
    print(f"best of {len(METHODS)} without adjustment {best['alone']:.3f}, with it {best['adjusted']:.3f} (known 0.180 and 0.040)")
    check("best of all methods, adjusted", best["adjusted"], 0.05, slack)


if __name__ == "__main__":
    sys.exit(main())
