#!/usr/bin/env python3
"""Tunes the same LoRA adapter here and with PEFT on transformers, in turn, and compares tokens per second.

    cargo build --release
    python3 benches/versus_peft.py CHECKPOINT TEXTS.jsonl [--texts 64] [--words 96] [--rounds 3] [--threads 2] [--program target/release/pdr-audit]

CHECKPOINT is a directory that transformers and we load, TEXTS.jsonl has a `text` a line; the first `--texts` are cut to `--words` words. Both
tune with rank 16, alpha 32, dropout 0.05 on the modules that PEFT chooses, AdamW, batches of 8, one epoch, in f32 on `--threads` threads. The time
is that of the steps: loading and saving are left out on both sides. Tokens are those of the texts, padding not counted. Prints the
medians, the ratio of each round and the processor. Needs torch, transformers and peft.
"""
import argparse, json, os, pathlib, platform, re, statistics, subprocess, sys, tempfile, time

BATCH = 8


def ours(program, checkpoint, texts, threads):
    with tempfile.TemporaryDirectory() as scratch:
        output = pathlib.Path(scratch) / "tuned"
        environment = {**os.environ, "PDR_AUDIT__ENGINE__THREADS": str(threads)}
        command = [program, "finetune", "-", "--model", checkpoint, "--output", output, "--epochs", "1", "--batch-size", str(BATCH)]
        text = "\n".join(json.dumps({"text": text}) for text in texts)
        done = subprocess.run([*map(str, command)], input=text, text=True, capture_output=True, env=environment)
        if done.returncode:
            sys.exit(done.stderr)
    return float(re.search(r"([\d.]+) tokens/s", done.stderr).group(1))


class Peer:
    def __init__(self, checkpoint, texts, threads):
        import torch
        from peft import LoraConfig, get_peft_model
        from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

        torch.set_num_threads(threads)
        torch.manual_seed(42)
        self.torch = torch
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(pathlib.Path(checkpoint) / "tokenizer.json"))
        self.ids = [tokenizer(text)["input_ids"] for text in texts]
        base = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32)
        self.model = get_peft_model(base, LoraConfig(r=16, lora_alpha=32, lora_dropout=0.05, task_type="CAUSAL_LM")).train()
        parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.parameters, self.optimizer = parameters, torch.optim.AdamW(parameters, lr=1e-3, weight_decay=5e-4)

    def step(self, ids):
        torch, longest = self.torch, max(map(len, ids))
        padded = lambda fill: torch.tensor([row + [fill] * (longest - len(row)) for row in ids])
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in ids])
        loss = self.model(input_ids=padded(0), attention_mask=mask, labels=padded(-100)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def rate(self):
        batches = [self.ids[start : start + BATCH] for start in range(0, len(self.ids) - BATCH + 1, BATCH)]
        self.step(batches[0])
        began = time.perf_counter()
        for batch in batches:
            self.step(batch)
        return sum(len(row) for batch in batches for row in batch) / (time.perf_counter() - began)


def processor():
    names = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return names[0] if names else platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("texts_file", type=pathlib.Path)
    parser.add_argument("--texts", type=int, default=64)
    parser.add_argument("--words", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--program", default="target/release/pdr-audit")
    arguments = parser.parse_args()
    lines = arguments.texts_file.read_text().splitlines()[: arguments.texts]
    texts = [" ".join(json.loads(line)["text"].split()[: arguments.words]) for line in lines]
    peer = Peer(arguments.checkpoint, texts, arguments.threads)
    rounds = []
    for number in range(arguments.rounds):
        pair = ours(arguments.program, arguments.checkpoint, texts, arguments.threads), peer.rate()
        rounds.append(pair)
        print(f"round {number + 1}: {pair[0]:.0f} and {pair[1]:.0f} tokens/s, ratio {pair[0] / pair[1]:.2f}")
    us, them = (statistics.median(column) for column in zip(*rounds))
    print(f"medians {us:.0f} and {them:.0f} tokens/s, ratio {us / them:.2f}; {len(texts)} texts, {arguments.threads} threads, {processor()}")


main()
