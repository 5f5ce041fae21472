#!/usr/bin/env python3
"""Times an audit whose token statistics are all cached, by several programs in turns.

    cargo build --release
    python3 benches/cached_audit.py PROGRAM... [--runs 21]

Audits the demo's 1,000 texts over HTTP by `ref`, `loss` and `min_k_plus_plus` once with each program, so that no further forward pass runs, and
then `--runs` times by turns. Prints medians, ranges and the ratio of each median to that of the first program.
"""
import argparse, contextlib, json, pathlib, statistics, time
from service import Service

AUDIT = pathlib.Path(__file__).parent.parent / "models/demo/audit.jsonl"


def timed(service, request):
    start = time.monotonic()
    audit = service.call("POST", "/v1/audits", request, prefer="wait=600")
    seconds = time.monotonic() - start
    assert audit["status"] == "succeeded", audit["error"]
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", nargs="+")
    parser.add_argument("--runs", type=int, default=21)
    arguments = parser.parse_args()
    samples = [{field: sample[field] for field in ("id", "text", "label")} for sample in map(json.loads, open(AUDIT))]
    request = {"samples": samples, "methods": ["ref", "loss", "min_k_plus_plus"]}
    with contextlib.ExitStack() as stack:
        services = [stack.enter_context(Service(program, 'engine.cache = "1GiB"')) for program in arguments.program]
        for service in services:
            service.wait(lambda: service.call("GET", "/readyz")["ready"])
            timed(service, request)
        turns = [[timed(service, request) for service in services] for _ in range(arguments.runs)]
    medians = [statistics.median(seconds) for seconds in zip(*turns)]
    for program, median, seconds in zip(arguments.program, medians, zip(*turns)):
        print(f"{program}: {median:.3f} s ({min(seconds):.3f} to {max(seconds):.3f}), {median / medians[0]:.2f} times the first")


if __name__ == "__main__":
    main()
