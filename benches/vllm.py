#!/usr/bin/env python3
"""A real vLLM behind the service, compared with independently computed results; and an audit during which it is killed.

    python3 benches/vllm.py TESTBED_DIR VLLM [--program target/release/pdr-audit] [--length 64] [--moments]

TESTBED_DIR is that of benches/testbed.py; VLLM is the program `vllm`, which serves TESTBED_DIR/model in f32. All scores of the table that need
log-probabilities alone are requested; a score may differ by 1e-4 + 1e-3 |x| and an AUROC by 1e-4. Then the same texts are audited
again, vLLM is killed after a quarter of them and started again: the audit must finish with the same scores, up to what vLLM's own numbers vary by
with the batch. At last the tokens/s of an audit are compared with those of a plain loop of the same prompts, by turns. Exits with 1 if a tolerance is
exceeded. With `--moments`, vLLM has the plugin in deploy/vllm (pip install --no-deps deploy/vllm), and all scores of the table are requested. Where VLLM is not installed, nothing is checked, and the exit status is 2.
"""
import argparse, csv, json, os, pathlib, shutil, signal, statistics, subprocess, sys, time, urllib.error, urllib.request
from service import Service
from testbed import method

COLUMNS = ["loss", "zlib", "lowercase", "ref", "mink"]
WITH_MOMENTS = ["mink++"]
AUROC = 1e-4
MODEL = "tiny"
LENGTH = 512
BATCH = 4096


class Vllm:
    """A vLLM on a fixed port, which can be killed and started again."""

    def __init__(self, program, model, port=8902):
        self.port, self.url = port, f"http://127.0.0.1:{port}"
        self.command = [program, "serve", str(model), "--dtype", "float32", "--max-model-len", str(LENGTH), "--port", str(port), "--host",
                        "127.0.0.1", "--enforce-eager", "--served-model-name", MODEL, "--max-num-batched-tokens", str(BATCH)]
        self.environment = os.environ | {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1",
                                         "VLLM_USE_V2_MODEL_RUNNER": "0"}
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        start_new_session=True)

    def wait(self):
        while True:
            try:
                return urllib.request.urlopen(f"{self.url}/v1/models").read()
            except OSError:
                assert self.process.poll() is None, "vLLM has exited"
                time.sleep(0.5)

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def complete(self, prompts):
        body = {"model": MODEL, "prompt": prompts, "max_tokens": 1, "prompt_logprobs": 1, "temperature": 0}
        request = urllib.request.Request(f"{self.url}/v1/completions", json.dumps(body).encode(), {"content-type": "application/json"})
        return urllib.request.urlopen(request).read()


def audit(service, samples, methods, meanwhile=lambda done: None):
    """The results by method, the scores by text, and the seconds that it took."""
    start = time.perf_counter()
    body = {"samples": samples, "methods": methods, "metrics": {"bootstrap": None}, "primary": "loss", "control": None}
    path = f"/v1/audits/{service.call('POST', '/v1/audits', body)['id']}"
    while (state := service.call("GET", path))["status"] in ("queued", "running"):
        meanwhile(state["progress"]["done"])
        time.sleep(0.02)
    took = time.perf_counter() - start
    assert state["status"] == "succeeded", state
    rows = [json.loads(line) for line in service.text("GET", f"{path}/scores").splitlines()]
    return state, [row for row in rows if "scores" in row], took


def compare(state, rows, table, references):
    """Prints the worst differences; whether all are within their tolerances."""
    worst, ok = 0.0, True
    aurocs = {entry["label"]: entry["auroc"] for entry in state["results"]["methods"]}
    for column, auroc in aurocs.items():
        want = table["results"][column]["auroc"]
        ok &= abs(auroc - want) <= AUROC
        print(f"{column:24} AUROC {auroc:.6f}, in the table {want:.6f}, difference {auroc - want:+.1e}")
    compared = 0
    for row, reference in zip(rows, references, strict=True):
        for column, score in row["scores"].items():
            want = float(reference[column])
            share = abs(score - want) / (1e-4 + 1e-3 * abs(want))
            worst, compared = max(worst, share), compared + 1
    print(f"{compared} scores: the worst takes {worst:.3f} of its tolerance of 1e-4 + 1e-3 |x|")
    return ok and worst <= 1


def survive(vllm, service, samples, methods, rows):
    """An audit during which vLLM is killed and started again; whether its scores are those of before."""
    killed = []

    def kill(done):
        if done > len(samples) // 4 and not killed:
            killed.append(done)
            vllm.kill()
            vllm.start()

    before = tokens(service)
    state, again, took = audit(service, samples, methods, kill)
    apart = max(abs(a["scores"][label] - b["scores"][label]) for a, b in zip(rows, again, strict=True) for label in b["scores"])
    scored = tokens(service) - before
    print(f"vLLM was killed after {killed} of {len(samples)} texts: {state['status']} after {took:.0f} s, scores within {apart:.1e} of before, "
          f"{scored} tokens scored")
    return bool(killed) and apart <= 1e-4


def tokens(service):
    """Tokens that the model behind the front has scored."""
    name = 'pdr_audit_engine_scored_tokens_total{model="m"}'
    return next(int(line.split()[-1]) for line in service.text("GET", "/metrics").splitlines() if line.startswith(name))


def race(vllm, service, samples, methods, rounds):
    """Tokens/s of audits and of a plain loop over the same prompts, by turns."""
    tokenizer = service.call("POST", "/v1/score", {"inputs": [sample["text"] for sample in samples], "methods": ["loss"], "details": ["tokens"]})
    prompts = [[token["id"] for token in result["tokens"]] for result in tokenizer["results"]]
    count = sum(map(len, prompts))
    audits, loops = [], []
    for _ in range(rounds):
        audits.append(count / audit(service, samples, methods)[2])
        start, batch = time.perf_counter(), []
        for prompt in [*prompts, []]:
            if not prompt or sum(map(len, batch)) + len(prompt) > BATCH:
                vllm.complete(batch)
                batch = []
            batch.append(prompt)
        loops.append(count / (time.perf_counter() - start))
    ratio = statistics.median(a / b for a, b in zip(audits, loops))
    print(f"audit {statistics.median(audits):.0f} tokens/s, plain loop {statistics.median(loops):.0f}: {ratio:.2f} "
          f"({min(a / b for a, b in zip(audits, loops)):.2f} to {max(a / b for a, b in zip(audits, loops)):.2f}, {rounds} rounds)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("testbed", type=pathlib.Path)
    parser.add_argument("vllm")
    parser.add_argument("--program", default="target/release/pdr-audit")
    parser.add_argument("--length", default="64")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--moments", action="store_true")
    arguments = parser.parse_args()
    if not shutil.which(arguments.vllm):
        print(f"SKIPPED: there is no program {arguments.vllm}, so nothing was checked against a real vLLM", file=sys.stderr)
        return 2
    table = json.loads((arguments.testbed / "results.json").read_text())[arguments.length]
    with open(arguments.testbed / f"scores_length{arguments.length}.csv") as file:
        references = list(csv.DictReader(file))
    data = arguments.testbed / f"data/length{arguments.length}.jsonl"
    samples = [{key: record[key] for key in ("text", "label")} for record in map(json.loads, data.read_text().splitlines())]
    columns = [name for name in table["results"] if name.split("|")[0] in COLUMNS + WITH_MOMENTS * arguments.moments]
    methods = [method(column) for column in columns]
    source = lambda name: json.dumps(str((arguments.testbed / name).resolve()))
    vllm = Vllm(arguments.vllm, arguments.testbed / "model")
    config = f"""
        engine.cache = 0
        engine.default_model = "m"
        [[models]]
        id = "m"
        source = "{MODEL}"
        tokenizer = {source("model")}
        served = {{ kind = "vllm", urls = ["{vllm.url}"], max_batch_tokens = {BATCH}, moments = {str(arguments.moments).lower()} }}
        reference = "reference"
        [[models]]
        id = "reference"
        source = {source("ref-model")}
    """
    try:
        vllm.wait()
        with Service(arguments.program, config) as service:
            service.wait(lambda: service.call("GET", "/readyz")["ready"])
            state, rows, _ = audit(service, samples, methods)
            print(json.dumps(state["results"]["provenance"]["backend"]))
            ok = compare(state, rows, table, references)
            ok &= survive(vllm, service, samples, [method("loss")], rows)
            vllm.wait()
            race(vllm, service, samples, [method("loss")], arguments.rounds)
    finally:
        vllm.kill()
    return not ok


if __name__ == "__main__":
    sys.exit(main())
