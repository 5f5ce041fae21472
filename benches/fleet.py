#!/usr/bin/env python3
"""A front with engines behind it (docs/served.md): how fast it is beside one engine alone, whether its numbers have the same bits, and whether
an audit finishes when an engine is killed in the middle of it.

    python3 benches/fleet.py MODEL TEXTS.ndjson [--program target/release/pdr-audit] [--rounds 5] [--texts 192]

Engines have one thread and one core each; the front and this client share the second core with the second engine. The rounds go by turns: the
engine alone, the front with that engine, the front with both. Prints the medians of tokens/s with their quartiles, the medians of the ratios in
each round, and the seconds of CPU that the front took for a second of an engine's. Exits with 1 if a bit differs or the audit fails.
"""
import argparse, contextlib, json, os, pathlib, statistics, sys, time
from service import Service

METHODS = ["loss", "min_k_plus_plus"]


def settings(model):
    return f"""
        server.request_timeout = "10m"
        engine.cache = 0
        engine.threads = 1
        engine.max_batch_tokens = 2048
        [[models]]
        id = "m"
        {model}
    """


def score(service, texts):
    """Tokens a second, and the results."""
    start = time.perf_counter()
    answer = service.call("POST", "/v1/score", {"inputs": texts, "methods": METHODS})
    return answer["usage"]["tokens"] / (time.perf_counter() - start), answer["results"]


def audit(service, samples, meanwhile=lambda done: None):
    """The finished audit; `meanwhile` is told how many texts are done."""
    body = {"samples": samples, "methods": METHODS, "metrics": {"bootstrap": None}}
    path = f"/v1/audits/{service.call('POST', '/v1/audits', body)['id']}"
    while (state := service.call("GET", path))["status"] in ("queued", "running"):
        meanwhile(state["progress"]["done"])
        time.sleep(0.02)
    return state


def cpu(service):
    """Seconds of CPU that a process has taken."""
    fields = pathlib.Path(f"/proc/{service.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(cases, texts, rounds):
    """The rounds; False if an answer has other bits than the first."""
    first, front = cases["one engine alone"], cases["front of one"]
    rates, used = {name: [] for name in cases}, []
    for service in cases.values():
        score(service, texts)
    for _ in range(rounds):
        answers = []
        for name, service in cases.items():
            before = cpu(front), cpu(first)
            rate, answer = score(service, texts)
            rates[name].append(rate)
            answers.append(answer)
            if service is front:
                used.append((cpu(front) - before[0]) / (cpu(first) - before[1]))
        if any(answer != answers[0] for answer in answers):
            return False
    for name, values in rates.items():
        low, middle, high = statistics.quantiles(values, n=4)
        ratio = statistics.median(rate / alone for rate, alone in zip(values, rates["one engine alone"]))
        print(f"{name}: {middle:.0f} tokens/s ({low:.0f} to {high:.0f}), {ratio:.3f} times the engine alone")
    print(f"CPU of the front for a second of the engine's: {statistics.median(used):.3f} s")
    return True


def lose_an_engine(first, second, front, texts):
    """An audit during which the first engine is killed; whether it has the bits of the second engine alone."""
    samples = [{"text": f"{number} {text}", "label": number % 2} for number, text in enumerate(texts)]
    alone = audit(second, samples)
    killed = []

    def kill(done):
        if done > len(samples) // 4 and not killed:
            first.process.kill()
            killed.append(done)

    behind = audit(front, samples, kill)
    lines = lambda service, state: service.text("GET", f"/v1/audits/{state['id']}/scores")
    scores = lambda service, state: [row["scores"] for row in map(json.loads, lines(service, state).splitlines()) if "scores" in row]
    same = behind["results"]["methods"] == alone["results"]["methods"] and scores(front, behind) == scores(second, alone)
    print(f"the engine was killed after {killed} of {len(samples)} texts: {behind['status']}, same bits: {same}")
    return bool(killed) and same and behind["status"] == "succeeded"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--program", default="target/release/pdr-audit")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--texts", type=int, default=192)
    arguments = parser.parse_args()
    records = [json.loads(line) for line in arguments.file.read_text().splitlines()]
    texts = [record.get("text", record.get("input")) for record in records]
    model = json.dumps(str(arguments.model.resolve()))
    with contextlib.ExitStack() as stack:

        def start(model, core):
            service = stack.enter_context(Service(arguments.program, settings(model), ["taskset", "-c", core]))
            service.wait(lambda: service.call("GET", "/readyz")["ready"])
            return service

        def front_of(*engines):
            urls = json.dumps([f"http://127.0.0.1:{engine.port}" for engine in engines])
            return start(f'source = "m"\ntokenizer = {model}\nserved = {{ kind = "pdr-audit", urls = {urls} }}', "1")

        first, second = (start(f"source = {model}", core) for core in "01")
        cases = {"one engine alone": first, "front of one": front_of(first), "front of both": front_of(first, second)}
        is_same = measure(cases, texts[: arguments.texts], arguments.rounds)
        print("the same bits:", is_same)
        return not (lose_an_engine(first, second, cases["front of both"], texts[:400]) and is_same)


if __name__ == "__main__":
    sys.exit(main())
