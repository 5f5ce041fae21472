#!/usr/bin/env python3
"""A real vLLM behind the service, compared with independently computed results; and an audit during which it is killed.

    python3 benches/vllm.py TESTBED_DIR VLLM [--program target/release/pdr-audit] [--length 64] [--kind openai | --moments]

TESTBED_DIR is that of benches/testbed.py; VLLM is the program `vllm`, which serves TESTBED_DIR/model in f32. All scores of the table that need
log-probabilities alone are requested; a score may differ by 1e-4 + 1e-3 |x| and an AUROC by 1e-4. Of 100 texts, scores by vLLM asked as `vllm` and as
`openai` and by this program itself may differ by 1e-5. Then the same texts are audited again, vLLM is killed after a quarter of them and started
again: the audit must finish with the same scores, up to what vLLM's own numbers vary by with the batch. Exits with 1 if a tolerance is exceeded.

With `--kind openai`, the audits ask vLLM as a server of OpenAI's kind. With `--moments`, vLLM has the plugin in deploy/vllm (pip install --no-deps
deploy/vllm), and all scores of the table are requested. Where VLLM is not installed, nothing is checked, and the exit status is 2.
"""
import argparse, csv, itertools, json, pathlib, shutil, sys, time
from model_servers import vllm as start_vllm
from service import Service
from testbed import method

COLUMNS = ["loss", "zlib", "lowercase", "ref", "mink"]
WITH_MOMENTS = ["mink++"]
AUROC = 1e-4
MODEL = "tiny"
LENGTH = 512
BATCH = 4096
# The program's own reading of the model, and vLLM as it is asked.
KINDS = ["here", "vllm", "openai"]
# Between vLLM and this program, which sum in another order.
BY_KIND = 1e-5


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


def compare_kinds(service, texts):
    """Prints how far scores of vLLM, asked in two ways, are from those of this program; whether all are within the tolerance."""
    body = {"inputs": texts, "methods": ["loss", "zlib", "min_k", "lowercase", "ez"]}
    scores = {}
    for model in KINDS:
        results = service.call("POST", "/v1/score", body | {"model": model})["results"]
        scores[model] = [score for result in results for _, score in sorted(result["scores"].items())]
    apart = lambda one, other: max(abs(a - b) for a, b in zip(scores[one], scores[other], strict=True))
    for one, other in itertools.combinations(KINDS, 2):
        print(f"{len(scores[one])} scores of {one} and {other}: {apart(one, other):.1e} apart")
    return max(apart("here", "vllm"), apart("here", "openai")) <= BY_KIND


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("testbed", type=pathlib.Path)
    parser.add_argument("vllm")
    parser.add_argument("--program", default="target/release/pdr-audit")
    parser.add_argument("--length", default="64")
    parser.add_argument("--kind", choices=["vllm", "openai"], default="vllm")
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
    vllm = start_vllm(arguments.vllm, arguments.testbed / "model", MODEL, LENGTH, BATCH)
    served = lambda id, kind, more="": f"""
        [[models]]
        id = "{id}"
        source = "{MODEL}"
        tokenizer = {source("model")}
        served = {{ kind = "{kind}", urls = ["{vllm.url}"], max_batch_tokens = {BATCH}{more} }}
        reference = "reference"
    """
    config = f"""
        engine.cache = 0
        engine.default_model = "m"
        [[models]]
        id = "here"
        source = {source("model")}
        reference = "reference"
        [[models]]
        id = "reference"
        source = {source("ref-model")}
        {served("m", arguments.kind, ", moments = true" * arguments.moments)}
        {served("vllm", "vllm")}
        {served("openai", "openai")}
    """
    try:
        vllm.wait()
        with Service(arguments.program, config) as service:
            service.wait(lambda: service.call("GET", "/readyz")["ready"])
            state, rows, _ = audit(service, samples, methods)
            print(json.dumps(state["results"]["provenance"]["backend"]))
            ok = compare(state, rows, table, references)
            ok &= compare_kinds(service, [sample["text"] for sample in samples[:100]])
            ok &= survive(vllm, service, samples, [method("loss")], rows)
    finally:
        vllm.kill()
    return not ok


if __name__ == "__main__":
    sys.exit(main())
