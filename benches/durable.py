"""What durability costs: an audit of 20,000 texts from a store against `score FILE`, the forward passes after a kill, and the
memory of a large upload. Standard library only.

    python3 benches/durable.py PROGRAM [ROUNDS] [MEGABYTES] [SECONDS]

SECONDS is how long the audit of the large upload runs before it is cancelled.
"""
import json, os, re, signal, subprocess, sys, tempfile, time, urllib.request

program = sys.argv[1]
rounds, megabytes, seconds_large = (int(given) for given in (sys.argv[2:] + ["3", "1024", "120"][len(sys.argv) - 2 :]))
work = tempfile.mkdtemp()
texts = os.path.join(work, "texts.jsonl")
TEXTS, METHODS = 20_000, "loss,zlib,min_k,min_k_plus_plus"
words = "brass clock struck nine in the old market of Fallowfield while rain fell on slate roofs and nobody came to the square".split()
with open(texts, "w") as file:
    for number in range(TEXTS):
        start = number % len(words)
        text = " ".join((words[start:] + words[:start]) * 2) + f" {number}."
        # Without labels, so that the audit computes what `score` does, and no verdict.
        file.write(json.dumps({"id": number, "text": text}) + "\n")


def service(store):
    environment = dict(os.environ, PDR_AUDIT__SERVER__DRAIN_DELAY="0",
                       PDR_AUDIT__STORE__URL=f"sqlite://{store}", PDR_AUDIT__LIMITS__DATASET="4GiB")
    process = subprocess.Popen([program, "serve", "--port", "0"], env=environment, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        found = re.search(r"listening on (http://[0-9.:]+)", line)
        if found:
            break
    pipe = process.stderr
    import threading
    threading.Thread(target=lambda: [None for _ in pipe], daemon=True).start()
    url = found.group(1)
    while True:
        try:
            urllib.request.urlopen(url + "/readyz").read()
            return process, url
        except OSError:
            time.sleep(0.05)


def call(url, body=None, media="application/json", headers={}):
    request = urllib.request.Request(url, data=body, headers={"content-type": media, **headers})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def memory(process, field):
    return int(re.search(rf"{field}:\s+(\d+) kB", open(f"/proc/{process.pid}/status").read()).group(1)) / 1024


def ended(url, audit):
    # The stream ends with the audit: to ask every few milliseconds would take some of the cores that it runs on.
    urllib.request.urlopen(f"{url}/v1/audits/{audit}/events").read()
    state = call(f"{url}/v1/audits/{audit}")
    assert state["status"] == "succeeded", state["error"]
    return state


def submit(url, dataset):
    body = {"dataset": dataset, "methods": METHODS.split(","), "metrics": {"bootstrap": None}}
    return call(url + "/v1/audits", json.dumps(body).encode())["id"]


print(f"{TEXTS} texts, demo model, {rounds} rounds, in turn")
ratios = []
for number in range(rounds):
    begun = time.monotonic()
    subprocess.run([program, "score", texts, "--model", "demo", "--methods", METHODS, "--output", os.path.join(work, f"scores-{number}.jsonl")],
                   check=True, stderr=subprocess.DEVNULL)
    scored = time.monotonic() - begun
    process, url = service(os.path.join(work, f"{number}.db"))
    dataset = call(url + "/v1/datasets", open(texts, "rb"), "application/x-ndjson")["id"]
    begun = time.monotonic()
    ended(url, submit(url, dataset))
    audited = time.monotonic() - begun
    process.send_signal(signal.SIGTERM)
    process.wait()
    ratios.append(audited / scored)
    print(f"  score FILE {scored:.2f} s, durable audit {audited:.2f} s, ratio {audited / scored:.3f}")
ratios.sort()
print(f"median ratio {ratios[len(ratios) // 2]:.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})")

store = os.path.join(work, "killed.db")
process, url = service(store)
dataset = call(url + "/v1/datasets", open(texts, "rb"), "application/x-ndjson")["id"]
audit = submit(url, dataset)
while call(f"{url}/v1/audits/{audit}")["progress"]["done"] < TEXTS // 2:
    time.sleep(0.02)
done = call(f"{url}/v1/audits/{audit}")["progress"]["done"]
process.kill()
process.wait()
process, url = service(store)
usage = ended(url, audit)["results"]["usage"]
process.kill()
process.wait()
again = usage["forward_passes"] - (TEXTS - done)
print(f"killed with {done} of {TEXTS} done: {max(again, 0)} of them ran again ({max(again, 0) / done:.1%})")

large = os.path.join(work, "large.jsonl")
with open(large, "w") as file:
    filler = " ".join(words) * 40
    number = 0
    while file.tell() < megabytes << 20:
        file.write(json.dumps({"id": number, "text": f"{number} {filler}", "label": number % 2}) + "\n")
        number += 1
process, url = service(os.path.join(work, "large.db"))
idle = memory(process, "VmRSS")
begun = time.monotonic()
answer = call(url + "/v1/datasets", open(large, "rb"), "application/x-ndjson")
seconds = time.monotonic() - begun
print(f"upload of {megabytes} MiB, {answer['samples']} samples: {seconds:.1f} s, peak {memory(process, 'VmHWM') - idle:.0f} MiB over idle ({idle:.0f} MiB)")
# The peak of the upload must not hide that of the audit.
open(f"/proc/{process.pid}/clear_refs", "w").write("5")
body = {"dataset": answer["id"], "methods": ["loss"], "overflow": "truncate", "metrics": {"bootstrap": None}}
audit = call(url + "/v1/audits", json.dumps(body).encode())["id"]
time.sleep(seconds_large)
state = call(f"{url}/v1/audits/{audit}")
done, peak = state["progress"]["done"], memory(process, "VmHWM") - idle
call(f"{url}/v1/audits/{audit}/cancel", b"{}")
print(f"its audit for {seconds_large} s, {done} samples: status {state['status']}, peak {peak:.0f} MiB over idle")
process.kill()
subprocess.run(["rm", "-r", work])
