#!/usr/bin/env python3
"""Measures how fast known texts are rescored: scores (texts times methods) per second over HTTP.

    cargo build --release
    python3 benches/rescore.py [--program target/release/pdr-audit] [--model DIR] [--texts FILE] [--rounds 5]

Scores 1,000 texts of 64 words once, so that their token ids and statistics are cached, and then posts them again with 20 new alphas
for three methods: 60,000 scores per request. The time is measured from the first byte sent to the last one read, by a client on the same
machine. Texts are random words, or the first 1,000 lines of FILE (`text` of each); the model is the demo or the checkpoint in DIR. Needs no
package.
"""
import argparse, http.client, json, pathlib, random, socket, statistics, subprocess, sys, tempfile, time

TEXTS, WORDS, ALPHAS = 1000, 64, 20
METHODS = ("loss", "min_k", "min_k_plus_plus")
FAMILIES = {"linear": 1.0, "exponential": 0.1, "polynomial": 2.0}


def random_texts():
    words = "the of and to in a is that for it as was with be by on not he his but at are this have from or had an they".split()
    draw = random.Random(0)
    return [" ".join(draw.choice(words) for _ in range(WORDS)) for _ in range(TEXTS)]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_until_ready(port, service):
    while service.poll() is None:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        time.sleep(0.1)
    sys.exit("the service has exited")


def post(port, texts, methods):
    body = json.dumps({"inputs": texts, "methods": methods})
    connection = http.client.HTTPConnection("127.0.0.1", port)
    start = time.perf_counter()
    connection.request("POST", "/v1/score", body, {"content-type": "application/json"})
    response = connection.getresponse()
    answer = response.read()
    seconds = time.perf_counter() - start
    if response.status != 200:
        sys.exit(answer.decode())
    return json.loads(answer), seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default="target/release/pdr-audit")
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--texts", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    texts = random_texts()
    if arguments.texts:
        texts = [json.loads(line)["text"] for line in arguments.texts.read_text().splitlines()[:TEXTS]]
    port = free_port()
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as config:
        print('[server]\nrequest_timeout = "600s"', file=config)
        if arguments.model:
            print(f'[[models]]\nid = "model"\nsource = {json.dumps(str(arguments.model.resolve()))}', file=config)
        config.flush()
        command = [arguments.program, "serve", "--config", config.name, "--port", str(port)]
        service = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until_ready(port, service)
            measure(port, texts, arguments.rounds)
        finally:
            service.terminate()


def measure(port, texts, rounds):
    first, seconds = post(port, texts, list(METHODS))
    usage = first["usage"]
    print(f"first time: {usage['tokens']} tokens, {usage['forward_passes']} forward passes, {seconds:.2f} s")
    for family, most in FAMILIES.items():
        rates = []
        for _ in range(rounds):
            alphas = [random.uniform(0.001, most) for _ in range(ALPHAS)]
            methods = [{"name": name, "pdr": {"decay": family, "alpha": alphas}} for name in METHODS]
            answer, seconds = post(port, texts, methods)
            scores = sum(len(result["scores"]) for result in answer["results"])
            if scores != len(texts) * len(METHODS) * ALPHAS or answer["usage"]["forward_passes"] != 0:
                sys.exit(f"unexpected result: {scores} scores, {answer['usage']}")
            rates.append(scores / seconds)
        median, low, high = statistics.median(rates), min(rates), max(rates)
        print(f"{family:12} {median:10,.0f} scores/s (of {rounds} runs, {low:,.0f} to {high:,.0f})")


if __name__ == "__main__":
    main()
