#!/usr/bin/env python3
"""Times an audit of one work against 100 known ones, beside the bare forward passes over the same passages.

    cargo build --release && cargo bench --bench throughput --no-run
    python3 benches/works_speed.py MODEL_DIR TEXTS.jsonl [--passages 8] [--rounds 3]

Works are made of words of TEXTS.jsonl, drawn at random, so that no two share text; each is a file of paragraphs of 128 words. By turns
in each round: `pdr-audit audit` from its start to its report (the model's loading, reading, cutting, all scores, the list of works), and
the layer `forward` of the benchmark `throughput`. Prints seconds and the ratio of each round.
"""
import argparse, json, pathlib, random, statistics, subprocess, tempfile, time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "target/release/pdr-audit"
WORDS = 128  # of a passage
KNOWN = 100  # works


def output(*command):
    return subprocess.run([str(part) for part in command], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def audit(model, folder):
    start = time.monotonic()
    report = json.loads(output(PROGRAM, "audit", folder / "book.txt", "--calibration", folder / "known", "--model", model,
                               "--methods", "loss", "--dtype", "f32", "--format", "json"))
    assert len(report["works"]) == 1, report
    return time.monotonic() - start


def passes(model, passages, count):
    printed = output("cargo", "bench", "--bench", "throughput", "--", model, passages, "--rounds", 1, "--layers", "forward")
    return count / json.loads(next(line for line in printed.splitlines() if line.startswith("{")))["texts_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("texts", type=pathlib.Path)
    parser.add_argument("--passages", type=int, default=8, help="of a work")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    words = [word for line in open(arguments.texts) for word in json.loads(line)["text"].split()]
    draw, model = random.Random(0), arguments.model.absolute()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "known").mkdir()
        for path in [folder / "book.txt", *(folder / "known" / f"{number}.txt" for number in range(KNOWN))]:
            paragraphs = (" ".join(draw.choices(words, k=WORDS)) for _ in range(arguments.passages))
            path.write_text("\n\n".join(paragraphs) + "\n")
        passages = output(PROGRAM, "texts", folder / "book.txt", folder / "known", "--format", "ndjson")
        (folder / "passages.jsonl").write_text(passages)
        count = len(passages.splitlines())
        rounds = [(audit(model, folder), passes(model, folder / "passages.jsonl", count)) for _ in range(arguments.rounds)]
    for seconds, bare in rounds:
        print(f"{count} passages: audit {seconds:.1f} s, forward passes {bare:.1f} s, ratio {seconds / bare:.3f}")
    print(f"median ratio {statistics.median(seconds / bare for seconds, bare in rounds):.3f}")


if __name__ == "__main__":
    main()
