"""Servers that run models, as processes of their own on this machine."""
import json, os, signal, socket, subprocess, sys, threading, time, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ModelServer:
    """A server on a free port, which can be killed and started again."""

    def __init__(self, command, environment=None):
        """`command` is given the port."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.command = [str(part) for part in command(self.port)]
        self.environment = os.environ | (environment or {})
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        start_new_session=True)

    def wait(self):
        while True:
            try:
                return urllib.request.urlopen(f"{self.url}/v1/models").read()
            except OSError:
                assert self.process.poll() is None, f"{self.command[0]} has exited"
                time.sleep(0.2)

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def vllm(program, model, name, context, batch_tokens, v2=False):
    """vLLM in f32 on a CPU, with the V1 or the V2 model runner."""
    command = lambda port: [program, "serve", model, "--dtype", "float32", "--max-model-len", context, "--port", port, "--host", "127.0.0.1",
                            "--enforce-eager", "--served-model-name", name, "--max-num-batched-tokens", batch_tokens]
    return ModelServer(command, {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1",
                                 "VLLM_USE_V2_MODEL_RUNNER": str(int(v2))})


def llama_cpp_python(python, model, name, context, *options):
    """llama-cpp-python's server, run by a Python that has it."""
    return ModelServer(lambda port: [python, "-m", "llama_cpp.server", "--model", model, "--model_alias", name, "--logits_all", "true",
                                     "--n_ctx", context, "--port", port, *options])


def sglang_stand_in(name, context, seconds_per_token):
    """A stand-in of SGLang: it answers as SGLang documents, with numbers that no model computed, after a fixed time for each token."""
    return ModelServer(lambda port: [sys.executable, __file__, port, name, context, seconds_per_token])


class StandIn(BaseHTTPRequestHandler):
    """Answers of [`sglang_stand_in`]. One batch is computed at a time, as on a device."""

    protocol_version = "HTTP/1.1"
    device = threading.Lock()

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        name, context = self.server.model
        answers = {"/v1/models": {"data": [{"id": name}]}, "/model_info": {"model_path": name},
                   "/server_info": {"version": "stand-in", "max_req_input_len": context}}
        self.answer(answers[self.path])

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        prompts = request["input_ids"]
        with self.device:
            time.sleep(self.server.seconds_per_token * sum(map(len, prompts)))
        self.answer([{"text": "", "meta_info": self.numbers(ids)} for ids in prompts])

    def numbers(self, ids):
        # Of each id another one, below the most probable.
        entries = [[-1 - id % 97 / 20, id, None] for id in ids]
        first = [[[-0.75, id + 1, None]] for id in ids]
        return {"prompt_tokens": len(ids), "input_token_logprobs": [[None, ids[0], None], *entries[1:]], "input_top_logprobs": [None, *first[1:]]}

    def log_message(self, *_):
        pass


def main(port, name, context, seconds_per_token):
    server = ThreadingHTTPServer(("127.0.0.1", int(port)), StandIn)
    server.model, server.seconds_per_token = (name, int(context)), float(seconds_per_token)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
