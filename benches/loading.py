#!/usr/bin/env python3
"""Measures how long models take to load, how much memory they take, and how much of it is returned.

    cargo build --release
    python3 benches/loading.py MODEL_DIR [MODEL_DIR ...] [--runs 3] [--program target/release/pdr-audit]

For each model and run, the service is started twice on a free port: with the model eager, to measure the time from the start of the process
to `/readyz` (files opened, digests computed, weights loaded), and with the model lazy, to measure the resident size of the process before
loading, after it and after unloading, each for the second time. Linux only; needs no package.
"""
import argparse, json, pathlib, statistics
from service import Service


def serving(program, model, load):
    return Service(program, f'[[models]]\nid = "model"\nsource = {json.dumps(str(model))}\nload = "{load}"\n')


def resident(service):
    status = pathlib.Path(f"/proc/{service.process.pid}/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


def ready(program, model):
    with serving(program, model, "eager") as service:
        return service.wait(lambda: service.call("GET", "/readyz")["ready"])


def memory(program, model):
    with serving(program, model, "lazy") as service:
        service.wait(lambda: service.call("GET", "/v1/models")["models"][0]["digest"])
        for _ in range(2):
            before = resident(service)
            entry = service.call("POST", "/v1/models/model/load")
            loaded = resident(service)
            service.call("POST", "/v1/models/model/unload")
            after = resident(service)
        return entry["weight_bytes"], loaded - before, loaded - after


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", type=pathlib.Path, nargs="+")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--program", default="target/release/pdr-audit")
    arguments = parser.parse_args()
    print("| model | files, MB | ready after, s (lowest to highest) | weights, MB | grown by | given back |\n" + "|---" * 6 + "|")
    for model in (path.absolute() for path in arguments.models):
        size = sum(file.stat().st_size for file in model.iterdir() if file.is_file()) / 1e6
        times = [ready(arguments.program, model) for _ in range(arguments.runs)]
        runs = [memory(arguments.program, model) for _ in range(arguments.runs)]
        weights = runs[0][0]
        grown, back = (statistics.median(run[column] for run in runs) / weights for column in (1, 2))
        spread = f"{statistics.median(times):.2f} ({min(times):.2f} to {max(times):.2f})"
        print(f"| {model.name} | {size:,.0f} | {spread} | {weights / 1e6:,.0f} | {100 * grown:.1f} % | {100 * back:.1f} % |", flush=True)


if __name__ == "__main__":
    main()
