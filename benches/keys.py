#!/usr/bin/env python3
"""Whether the time of an answer tells what the client of another key has scored. One client scores a text, then another client scores the
same text and a new one of the same length, in random order; the first client's second time shows what a cache would save.

    python3 benches/keys.py [PROGRAM] [--texts 300]

Prints the median times of each kind with their quartiles, and the p-value of a two-sided Mann-Whitney test between texts that another key
has scored and new ones. Needs SciPy. Exits with 1 if an answer to the other client counts a cached pass.
"""
import argparse, http.client, json, os, pathlib, random, re, statistics, subprocess, tempfile, time
from scipy.stats import mannwhitneyu

WORDS = [line for line in pathlib.Path(__file__).parent.parent.joinpath("docs/methods.md").read_text().split() if line.isalpha()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default="target/release/pdr-audit")
    parser.add_argument("--texts", type=int, default=300)
    arguments = parser.parse_args()
    generator = random.Random(0)
    with tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, "PDR_AUDIT__AUTH__KEYS": f"{directory}/keys.toml"}
        new_key = lambda name: subprocess.run([arguments.program, "key", "new", "--name", name], env=environment, check=True,
                                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.strip()
        keys = {name: new_key(name) for name in ("first", "second")}
        log = open(f"{directory}/log", "w+")
        service = subprocess.Popen([arguments.program, "serve", "--port", "0"], env=environment, stderr=log, stdout=log)
        try:
            address = None
            while not address:
                time.sleep(0.1)
                address = re.search(r"listening on http://([0-9.:]+)", pathlib.Path(log.name).read_text())
            connection = http.client.HTTPConnection(address[1])
            ready = lambda: (connection.request("GET", "/readyz"), connection.getresponse().read().startswith(b'{"ready":true'))[1]
            while not ready():
                time.sleep(0.1)

            def score(key, text):
                body = json.dumps({"inputs": text, "methods": ["loss"]})
                headers = {"authorization": f"Bearer {keys[key]}", "content-type": "application/json"}
                start = time.perf_counter()
                connection.request("POST", "/v1/score", body, headers)
                answer = connection.getresponse().read()
                seconds = time.perf_counter() - start
                return seconds, json.loads(answer)["usage"]["cached_passes"]

            text = lambda: " ".join(generator.choices(WORDS, k=60))
            times = {"scored by another key": [], "new": [], "scored by the same key": []}
            told = 0
            for number in range(arguments.texts + 20):
                known, new = text(), text()
                score("first", known)
                measured = {}
                for kind in generator.sample(["scored by another key", "new"], 2):
                    measured[kind], cached = score("second", known if kind != "new" else new)
                    told += cached
                measured["scored by the same key"], _ = score("first", known)
                # The first ones warm everything up.
                if number >= 20:
                    for kind, seconds in measured.items():
                        times[kind].append(seconds)
        finally:
            service.terminate()
            service.wait()
    for kind, seconds in times.items():
        low, median, high = statistics.quantiles(seconds, n=4)
        print(f"{kind:24} {median * 1e3:7.2f} ms ({low * 1e3:.2f} to {high * 1e3:.2f})")
    p = mannwhitneyu(times["scored by another key"], times["new"]).pvalue
    print(f"between the first two: p = {p:.2f}, {arguments.texts} texts; cached passes told to the other key: {told}")
    return int(told > 0)


if __name__ == "__main__":
    raise SystemExit(main())
