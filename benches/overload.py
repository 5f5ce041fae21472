#!/usr/bin/env python3
"""What a request costs that a full queue refuses, in CPU time of the service.

    python3 benches/overload.py [PROGRAM] [--seconds 20] [--kib 10]

Clients keep the queue full for a while, alone and beside others whose requests of ten texts are refused. The CPU time of a token comes from
the first phase; what the second takes beyond that is shared among its refusals. Needs no package.
"""
import argparse, http.client, json, os, pathlib, random, re, subprocess, tempfile, threading, time

FILLERS, FLOODERS = 2, 4


def words(generator, length):
    text = ""
    while len(text) < length:
        text += generator.choice(["the", "brass", "clock", "struck", "nine", "in", "Fallowfield", "once", "more", "before", "dawn"]) + " "
    return text[:length]


class Client(threading.Thread):
    def __init__(self, address, stop, texts, length, seed):
        super().__init__(daemon=True)
        self.address, self.stop, self.texts, self.length = address, stop, texts, length
        self.generator, self.tokens, self.refused = random.Random(seed), 0, 0

    def run(self):
        connection = http.client.HTTPConnection(self.address)
        while not self.stop.is_set():
            inputs = [words(self.generator, self.length) for _ in range(self.texts)]
            body = json.dumps({"inputs": inputs, "methods": ["loss"], "overflow": "truncate"})
            connection.request("POST", "/v1/score", body, {"content-type": "application/json"})
            response = connection.getresponse()
            answer = json.loads(response.read())
            if response.status == 200:
                self.tokens += answer["usage"]["tokens"]
            elif response.status in (413, 503):
                self.refused += 1
            else:
                raise SystemExit(answer)


def cpu_seconds(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def phase(address, service, seconds, clients):
    stop, begin = threading.Event(), cpu_seconds(service)
    running = [Client(address, stop, texts, length, seed) for seed, (texts, length) in enumerate(clients)]
    for client in running:
        client.start()
    time.sleep(seconds)
    stop.set()
    for client in running:
        client.join()
    return cpu_seconds(service) - begin, sum(client.tokens for client in running), sum(client.refused for client in running)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default="target/release/pdr-audit")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--kib", type=int, default=10, help="of text in a request that is refused")
    arguments = parser.parse_args()
    environment = {**os.environ, "PDR_AUDIT__ENGINE__CACHE": "0",
                   "PDR_AUDIT__ENGINE__MAX_QUEUE_TOKENS": "2000", "PDR_AUDIT__LOG__LEVEL": "warn,pdr_audit::app=info"}
    with tempfile.TemporaryFile("w+") as log:
        service = subprocess.Popen([arguments.program, "serve", "--port", "0"], env=environment, stderr=log)
        try:
            address = None
            while not address:
                time.sleep(0.1)
                log.seek(0)
                address = re.search(r"listening on http://([0-9.:]+)", log.read())
            address, filler, flooder = address[1], (2, 1_500), (10, arguments.kib * 1024 // 10)
            phase(address, service, 2, [filler] * FILLERS)
            cpu, tokens, refused = phase(address, service, arguments.seconds, [filler] * FILLERS)
            more_cpu, more_tokens, more_refused = phase(address, service, arguments.seconds, [filler] * FILLERS + [flooder] * FLOODERS)
        finally:
            service.terminate()
            service.wait()
    print(f"alone:  {tokens / arguments.seconds:9,.0f} tokens a second, {refused:7,} requests refused")
    print(f"beside: {more_tokens / arguments.seconds:9,.0f} tokens a second, {more_refused:7,} requests refused")
    each = (more_cpu - cpu / tokens * more_tokens) / (more_refused - refused) * 1e3
    print(f"{each:.2f} ms of CPU time a refused request of ten texts, {arguments.kib} KiB together")


if __name__ == "__main__":
    main()
