#!/usr/bin/env python3
"""Measures the peak memory of `pdr-audit score`, by number of texts and by model.

    cargo build --release
    python3 benches/memory.py TEXTS.jsonl [MODEL_DIR ...] [--program target/release/pdr-audit]

The demo model scores 10,000 and 100,000 different texts, first without the cache of statistics (`engine.cache`) and then with it, which
fills up; each further model scores the texts of the file, relative to the bytes of its weights. Linux or macOS; needs no package.
"""
import argparse, json, os, pathlib, subprocess, sys, tempfile

from service import Service

UNIT = 1 if sys.platform == "darwin" else 1024


def score(program, texts, config):
    """The peak resident size of `score`, in bytes, and the number of lines it wrote."""
    with tempfile.TemporaryFile() as out:
        command = [program, "score", texts, "--config", config]
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        assert status == 0, f"score ended with {status}"
        out.seek(0)
        return usage.ru_maxrss * UNIT, sum(1 for _ in out)


def row(name, weights, program, texts, config):
    peak, lines = score(program, texts, config)
    print(f"| {name} | {lines:,} | {weights / 1e6:,.0f} | {peak / 1e6:,.0f} | {(peak - weights) / 1e6:,.0f} |", flush=True)


def weight_bytes(program, settings):
    with Service(program, settings) as service:
        service.wait(lambda: service.call("GET", "/readyz")["ready"])
        return sum(model["weight_bytes"] for model in service.call("GET", "/v1/models")["models"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("texts", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path, nargs="*")
    parser.add_argument("--program", default="target/release/pdr-audit")
    arguments = parser.parse_args()
    program = arguments.program
    texts = [json.loads(line)["text"] for line in open(arguments.texts)]
    print("| model | texts | weights, MB | peak, MB | in addition to the weights, MB |\n" + "|---" * 5 + "|")
    with tempfile.TemporaryDirectory() as directory:
        config, many = pathlib.Path(directory) / "c.toml", pathlib.Path(directory) / "many.jsonl"
        demo = weight_bytes(program, "")
        for cache in ("0B", "256MiB"):
            config.write_text(f'[engine]\ncache = "{cache}"\n')
            for count in (10_000, 100_000):
                with open(many, "w") as file:
                    file.writelines(json.dumps({"text": f"{i} {texts[i % len(texts)]}"}) + "\n" for i in range(count))
                row(f"demo, a cache of {cache}", demo, program, many, config)
        for model in arguments.models:
            settings = f'[[models]]\nid = "model"\nsource = {json.dumps(str(model.absolute()))}\n'
            config.write_text(settings)
            row(model.name, weight_bytes(program, settings), program, arguments.texts, config)


if __name__ == "__main__":
    main()
