#!/usr/bin/env python3
"""The rate of audits through the program, beside a plain loop that asks the same server for the same numbers.

    python3 benches/served_overhead.py vllm --server VLLM --testbed TESTBED_DIR [--kind vllm [--moments]]
    python3 benches/served_overhead.py llama-cpp-python --server PYTHON       # a Python that has it, with its server
    python3 benches/served_overhead.py sglang-stand-in

and `--program target/release/pdr-audit`, `--rounds 7`, `--in-flight 2`. By turns, an audit of all texts for `loss` and a loop over the same token ids
(texts, where the server takes no ids) that has `--in-flight` requests at a time, each on a connection that it keeps: one by default, which is a plain loop, or
two, as many as the program has. Texts go in the same order in requests of as many tokens as fit. The mean log-probability of each text must be the same both ways. `vllm` and `openai` with vLLM: vLLM serves
TESTBED_DIR/model in f32. llama-cpp-python serves a small fixture. The stand-in takes a fixed time for each token, so that no answer waits for
the processor; its numbers are those of no model.
"""
import argparse, http.client, json, pathlib, statistics, sys, threading, time
from model_servers import llama_cpp_python, sglang_stand_in, vllm
from service import Service

ROOT = pathlib.Path(__file__).resolve().parents[1]
NAME = "m"
BATCH = 4096
SECONDS_PER_TOKEN = 20e-6
# A sum of log-probabilities in f32 in another batch.
SAME = 1e-4


def vllm_question(prompts, _):
    body = {"model": NAME, "prompt": prompts, "max_tokens": 1, "prompt_logprobs": 1, "temperature": 0}
    return "/v1/completions", body


def vllm_numbers(answer, prompts):
    lps = lambda choice, ids: [at[str(id)]["logprob"] for at, id in zip(choice["prompt_logprobs"][1:], ids[1:], strict=True)]
    return list(map(lps, answer["choices"], prompts))


def openai_question(prompts, texts):
    """Lists of ids, or one text."""
    return "/v1/completions", {"model": NAME, "prompt": texts[0] if texts else prompts, "max_tokens": 1, "temperature": 0, "logprobs": 1, "echo": True}


def openai_numbers(answer, prompts):
    return [choice["logprobs"]["token_logprobs"][1:len(ids)] for choice, ids in zip(answer["choices"], prompts, strict=True)]


def sglang_question(prompts, _):
    sampling = {"max_new_tokens": 0, "temperature": 0}
    return "/generate", {"input_ids": prompts, "sampling_params": sampling, "return_logprob": True, "logprob_start_len": 0, "top_logprobs_num": 1}


def sglang_numbers(answers, _):
    return [[lp for lp, *_ in answer["meta_info"]["input_token_logprobs"][1:]] for answer in answers]


KINDS = {"vllm": (vllm_question, vllm_numbers), "openai": (openai_question, openai_numbers), "sglang": (sglang_question, sglang_numbers)}


def batches(prompts, most):
    """Ranges of prompts, of as many as have at most this many tokens together."""
    start, tokens = 0, 0
    for index, ids in enumerate(prompts):
        if index > start and tokens + len(ids) > most:
            yield range(start, index)
            start, tokens = index, 0
        tokens += len(ids)
    yield range(start, len(prompts))


def loop(port, kind, prompts, texts, in_flight):
    """The mean log-probability of each prompt, or of each text where there are some."""
    question, numbers = KINDS[kind]
    means, waiting, lock = [None] * len(prompts), batches(prompts, 0 if texts else BATCH), threading.Lock()

    def ask():
        connection = http.client.HTTPConnection("127.0.0.1", port)
        while True:
            with lock:
                batch = next(waiting, None)
            if batch is None:
                return
            asked = [prompts[index] for index in batch]
            path, body = question(asked, texts and [texts[index] for index in batch])
            connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
            response = connection.getresponse()
            answer = json.loads(response.read())
            assert response.status == 200, answer
            for index, lps in zip(batch, numbers(answer, asked), strict=True):
                means[index] = statistics.fmean(lps)

    threads = [threading.Thread(target=ask) for _ in range(in_flight)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return means


def audit(service, samples):
    """The mean log-probability of each text, by an audit."""
    body = {"samples": samples, "methods": ["loss"], "metrics": {"bootstrap": None}, "control": None}
    state = service.call("POST", "/v1/audits", body, prefer="wait=600")
    assert state["status"] == "succeeded", state
    rows = [json.loads(line) for line in service.text("GET", f"/v1/audits/{state['id']}/scores").splitlines()]
    return [row["scores"]["loss"] for row in rows if "scores" in row]


def race(server, service, kind, samples, takes_texts, arguments):
    """Prints the tokens/s of audits and of loops, by turns, and their ratio."""
    texts = [sample["text"] for sample in samples]
    known = service.call("POST", "/v1/score", {"inputs": texts, "methods": ["loss"], "details": ["tokens"]})
    prompts = [[token["id"] for token in result["tokens"]] for result in known["results"]]
    print(json.dumps(known["model"]["backend"]))
    count, rates, apart = sum(map(len, prompts)), ([], []), 0.0
    for _ in range(arguments.rounds):
        means = []
        for rate, run in zip(rates, (lambda: audit(service, samples), lambda: loop(server.port, kind, prompts, takes_texts and texts, arguments.in_flight))):
            start = time.perf_counter()
            means.append(run())
            rate.append(count / (time.perf_counter() - start))
        apart = max(apart, *(abs(a - b) for a, b in zip(*means, strict=True)))
    assert apart <= SAME, f"the mean log-probability of a text differs by {apart}"
    ratios = [ours / theirs for ours, theirs in zip(*rates)]
    spread = lambda values, form: f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"
    print(f"{len(texts)} texts, {count} tokens, {arguments.rounds} rounds, {arguments.in_flight} in flight in the loop; means of texts within {apart:.1e}")
    print(f"audit {spread(rates[0], '.0f')} tokens/s, plain loop {spread(rates[1], '.0f')}: ratio {spread(ratios, '.3f')}")


def processor():
    return next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", choices=["vllm", "llama-cpp-python", "sglang-stand-in"])
    parser.add_argument("--server")
    parser.add_argument("--testbed", type=pathlib.Path)
    parser.add_argument("--kind", choices=["vllm", "openai"], default="openai")
    parser.add_argument("--moments", action="store_true")
    parser.add_argument("--program", default="target/release/pdr-audit")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--in-flight", type=int, default=1)
    arguments = parser.parse_args()
    kind, takes_texts, texts, words, data, more = arguments.kind, False, None, None, ROOT / "models/demo/audit.jsonl", ""
    if arguments.runs == "vllm":
        tokenizer, data = arguments.testbed / "model", arguments.testbed / "data/length64.jsonl"
        server = vllm(arguments.server, tokenizer, NAME, 512, BATCH)
        more = "moments = true, " * (kind == "vllm" and arguments.moments)
    elif arguments.runs == "llama-cpp-python":
        takes_texts, texts, words, tokenizer, more = True, 400, 16, ROOT / "tests/fixtures/goldens/llama-gqa", "context = 95, "
        server = llama_cpp_python(arguments.server, ROOT / "tests/fixtures/gguf/llama.gguf", NAME, 96)
    else:
        kind, tokenizer = "sglang", ROOT / "models/demo"
        server = sglang_stand_in(NAME, 512, SECONDS_PER_TOKEN)
        print(f"a stand-in of SGLang that takes {SECONDS_PER_TOKEN * 1e6:.0f} us a token, so at most {1 / SECONDS_PER_TOKEN:.0f} tokens/s")
    records = map(json.loads, data.read_text().splitlines()[:texts])
    samples = [{"text": " ".join(record["text"].split()[:words]), "label": record["label"]} for record in records]
    config = f"""
        engine.cache = 0
        engine.default_model = "m"
        [[models]]
        id = "m"
        source = "{NAME}"
        tokenizer = {json.dumps(str(tokenizer.resolve()))}
        served = {{ kind = "{kind}", urls = ["{server.url}"], {more}max_batch_tokens = {BATCH} }}
    """
    print(f"{arguments.runs} asked as {kind}, on {processor()}")
    try:
        server.wait()
        with Service(arguments.program, config) as service:
            service.wait(lambda: service.call("GET", "/readyz")["ready"])
            race(server, service, kind, samples, takes_texts, arguments)
    finally:
        server.kill()


if __name__ == "__main__":
    sys.exit(main())
