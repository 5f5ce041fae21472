"""What adapters cost: scoring under one against scoring its base, and interactive requests while a model is tuned against none
being tuned. Standard library only.

    python3 benches/tuning.py PROGRAM MODEL_DIRECTORY [ROUNDS] [TEXTS]
"""
import json, os, re, statistics, subprocess, sys, tempfile, threading, time, urllib.request

program, model = sys.argv[1:3]
rounds, count = (int(given) for given in (sys.argv[3:] + ["5", "256"][len(sys.argv) - 3 :]))
work = tempfile.mkdtemp()
environment = dict(os.environ, PDR_AUDIT__ENGINE__CACHE="0", PDR_AUDIT__SERVER__DRAIN_DELAY="0")
words = "brass clock struck nine in the old market of Fallowfield while rain fell on slate roofs and nobody came to the square".split()


def text(number, length=64):
    return " ".join(words[(number * 7 + place * (number % 5 + 1)) % len(words)] for place in range(length)) + f" {number}"


def file(name, numbers):
    path = os.path.join(work, name)
    with open(path, "w") as lines:
        lines.writelines(json.dumps({"text": text(number)}) + "\n" for number in numbers)
    return path


def seconds(*arguments):
    begun = time.monotonic()
    subprocess.run([program, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - begun


tuning, scored = file("tuning.jsonl", range(10_000, 10_064)), file("scored.jsonl", range(count))
adapter = os.path.join(work, "tuned")
subprocess.run([program, "finetune", tuning, "--model", model, "--output", adapter, "--epochs", "1"], env=environment, check=True)
name = os.path.basename(os.path.normpath(model))
print(f"{count} texts of 64 words, {name}, {rounds} rounds, in turn")
ratios = []
for number in range(rounds):
    base = seconds("score", scored, "--model", model, "--methods", "loss")
    under = seconds("score", scored, "--model", f"{model}:tuned", "--adapter", adapter, "--methods", "loss")
    ratios.append(under / base)
    print(f"  base {base:.2f} s, under the adapter {under:.2f} s, ratio {under / base:.3f}")
print(f"median ratio {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")

process = subprocess.Popen([program, "serve", "--port", "0", "--model", model], env=environment, stderr=subprocess.PIPE, text=True)
url = next(found.group(1) for found in (re.search(r"listening on (http://[0-9.:]+)", line) for line in process.stderr) if found)
threading.Thread(target=lambda: [None for _ in process.stderr], daemon=True).start()


def call(path, body=None):
    request = urllib.request.Request(url + path, data=None if body is None else json.dumps(body).encode(), headers={"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def resident():
    return int(re.search(r"VmRSS:\s+(\d+) kB", open(f"/proc/{process.pid}/status").read()).group(1)) / 1024


def latencies(first):
    found = []
    for number in range(first, first + 40):
        begun = time.monotonic()
        call("/v1/score", {"inputs": text(number), "methods": ["loss"]})
        found.append(1000 * (time.monotonic() - begun))
        time.sleep(0.1)
    return sorted(found)


while True:
    try:
        call("/readyz")
        break
    except OSError:
        time.sleep(0.1)
latencies(20_000)
alone, idle = latencies(30_000), resident()
body = {"name": "busy", "samples": [{"text": text(number)} for number in range(50_000, 50_256)], "optimizer": {"epochs": 100}}
job = call("/v1/finetunes", body)["id"]
while call(f"/v1/finetunes/{job}")["progress"]["done"] < 2:
    time.sleep(0.2)
busy, peak = latencies(40_000), resident()
steps = call(f"/v1/finetunes/{job}")["progress"]["done"]
used = call("/v1/models")["devices"][0]
call(f"/v1/finetunes/{job}/cancel", {})
show = lambda found: f"median {statistics.median(found):.0f} ms, slowest {found[-1]:.0f} ms"
print(f"one text at a time: alone {show(alone)}; while a model is tuned {show(busy)}, and {steps} steps were made")
print(f"resident {idle:.0f} MiB before tuning, {peak:.0f} MiB while it runs; by the books {used}")
process.terminate()
process.wait()
subprocess.run(["rm", "-r", work])
