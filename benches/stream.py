#!/usr/bin/env python3
"""Measures how fast a model is whose layers are read from disk in every forward pass, and how much memory it takes.

    cargo build --release
    python3 benches/stream.py DIRECTORY --tokenizer TOKENIZER.json [--layers 36] [--tokens 32 1024] [--memory 6GiB] [--resident] [--runs 5 3]

Makes a random checkpoint of the shape of pythia-12b in bf16 in DIRECTORY, unless there is one, with fewer layers if so wished: 1 GB and 0.63 GB a
layer, in shards; 12.4 GB with 18 layers. Starts the service with `layers = "stream"` and, with `--resident`, a second one with all layers in memory.
A run scores texts of `--tokens` tokens in one batch, by turns: by the first service after the pages of the files have left the page cache, and by
the second one, whose scores must be equal in every digit. Just before it, the rate of the disk is measured: one reader of the same files by
O_DIRECT, 16 MiB at a time. The share is that of the time that the pass may take, which is that of reading at this rate or of the resident pass,
whichever is longer. Linux only; needs numpy.
"""
import argparse, contextlib, json, mmap, os, pathlib, re, shutil, statistics, time
import numpy
from service import Service

HIDDEN, INNER, HEADS, VOCAB, CONTEXT = 5120, 20480, 40, 50688, 2048
SHARD = 2 << 30


def tensors(layers):
    """Names and shapes, in the order of the files."""
    yield "gpt_neox.embed_in.weight", (VOCAB, HIDDEN)
    for layer in range(layers):
        name = f"gpt_neox.layers.{layer}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            yield f"{name}{norm}.weight", (HIDDEN,)
            yield f"{name}{norm}.bias", (HIDDEN,)
        for part, shape in (("attention.query_key_value", (3 * HIDDEN, HIDDEN)), ("attention.dense", (HIDDEN, HIDDEN)),
                            ("mlp.dense_h_to_4h", (INNER, HIDDEN)), ("mlp.dense_4h_to_h", (HIDDEN, INNER))):
            yield f"{name}{part}.weight", shape
            yield f"{name}{part}.bias", shape[:1]
    yield "gpt_neox.final_layer_norm.weight", (HIDDEN,)
    yield "gpt_neox.final_layer_norm.bias", (HIDDEN,)
    yield "embed_out.weight", (VOCAB, HIDDEN)


def make(directory, layers, tokenizer):
    directory.mkdir(parents=True)
    config = {"model_type": "gpt_neox", "hidden_size": HIDDEN, "intermediate_size": INNER, "num_attention_heads": HEADS, "num_hidden_layers": layers,
              "vocab_size": VOCAB, "max_position_embeddings": CONTEXT, "rotary_pct": 0.25, "hidden_act": "gelu", "tie_word_embeddings": False}
    (directory / "config.json").write_text(json.dumps(config))
    shutil.copy(tokenizer, directory / "tokenizer.json")
    random = numpy.random.default_rng(7)
    noise = ((random.standard_normal(1 << 25, numpy.float32) * 0.02).view(numpy.uint32) >> 16).astype(numpy.uint16)
    one = numpy.full(HIDDEN, 0x3F80, numpy.uint16)
    shards, size = [[]], 0
    for name, shape in tensors(layers):
        count = 2 * int(numpy.prod(shape))
        if size + count > SHARD:
            shards.append([])
            size = 0
        shards[-1].append((name, shape, count))
        size += count
    weight_map = {}
    for index, shard in enumerate(shards):
        file, header, end = f"model-{index + 1:05}-of-{len(shards):05}.safetensors", {}, 0
        for name, shape, count in shard:
            header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + count]}
            end, weight_map[name] = end + count, file
        text = json.dumps(header).encode()
        with open(directory / file, "wb") as out:
            out.write(len(text).to_bytes(8, "little") + text)
            for name, _, count in shard:
                if "norm.weight" in name:
                    out.write(one.tobytes())
                    continue
                elements = count // 2
                while elements:
                    start = int(random.integers(0, len(noise) // 2))
                    part = noise[start:start + elements]
                    out.write(part.tobytes())
                    elements -= len(part)
            os.fsync(out.fileno())
    (directory / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


def weights(directory):
    return sorted(directory.glob("*.safetensors"))


def forget(directory):
    """Has the pages of the files leave the page cache."""
    for file in weights(directory):
        handle = os.open(file, os.O_RDONLY)
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


def disk_rate(directory, most):
    """Bytes a second of one reader, of this many bytes at most."""
    block, total, start = mmap.mmap(-1, 16 << 20), 0, time.monotonic()
    for file in weights(directory):
        handle = os.open(file, os.O_RDONLY | os.O_DIRECT)
        position = 0
        while total < most and (count := os.preadv(handle, [block], position)):
            total += count
            position += count
            if count % 4096:
                break
        os.close(handle)
    return total / (time.monotonic() - start)


class Model:
    """The model in a service of its own."""

    def __init__(self, stack, arguments, layers):
        memory = arguments.memory if layers == "stream" else "64GiB"
        config = (f'[server]\nrequest_timeout = "1h"\nbody_limit = "32MiB"\n[engine]\nmemory = "{memory}"\n'
                  f'cache = 0\nmax_batch_tokens = {max(2048, 2 * max(arguments.tokens))}\n'
                  f'[[models]]\nid = "m"\nsource = {json.dumps(str(arguments.directory.absolute()))}\nlayers = "{layers}"\n')
        self.service = stack.enter_context(Service(arguments.program, config))
        self.service.wait(lambda: self.service.call("GET", "/readyz")["ready"])
        self.weights = self.service.call("GET", "/v1/models")["models"][0]["weight_bytes"]

    def read(self, file, pattern):
        """A number of a file about the process."""
        return int(re.search(pattern, pathlib.Path(f"/proc/{self.service.process.pid}/{file}").read_text())[1])

    def score(self, texts):
        """Seconds of the pass, tokens, bytes that were read, peak bytes of the process so far, and scores."""
        before, start = self.read("io", r"read_bytes: (\d+)"), time.monotonic()
        answer = self.service.call("POST", "/v1/score", {"model": "m", "inputs": texts, "methods": ["loss", "min_k_plus_plus"]})
        seconds, count = time.monotonic() - start, self.read("io", r"read_bytes: (\d+)") - before
        tokens = sum(result["scored_tokens"] + 1 for result in answer["results"])
        peak = 1024 * self.read("status", r"VmHWM:\s+(\d+)")
        return seconds, tokens, count, peak, [result["scores"] for result in answer["results"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--tokenizer", type=pathlib.Path, help="tokenizer.json of any model with at most 50,688 tokens")
    parser.add_argument("--layers", type=int, default=36)
    parser.add_argument("--tokens", type=int, nargs="+", default=[32, 1024])
    parser.add_argument("--memory", default="6GiB")
    parser.add_argument("--resident", action="store_true")
    parser.add_argument("--runs", type=int, nargs="+", default=[3], help="for each of --tokens; the last one for those that are left")
    parser.add_argument("--disk", type=int, default=4 << 30, help="bytes by which the rate of the disk is measured")
    parser.add_argument("--program", default="target/release/pdr-audit")
    arguments = parser.parse_args()
    if not arguments.directory.exists():
        make(arguments.directory, arguments.layers, arguments.tokenizer)
    size = sum(file.stat().st_size for file in weights(arguments.directory))
    words = numpy.random.default_rng(3).integers(97, 123, 1 << 20).astype(numpy.uint8).tobytes().decode()
    with contextlib.ExitStack() as stack:
        streamed = Model(stack, arguments, "stream")
        resident = Model(stack, arguments, "resident") if arguments.resident else None
        print(f"{size / 1e9:.2f} GB; weights by the books: {streamed.weights / 1e6:,.0f} MB")
        print("| tokens | streamed, s | resident, s | read, GB | disk, MB/s | read, MB/s | share | peak, MB |\n" + "|---" * 8 + "|")
        for index, tokens in enumerate(arguments.tokens):
            # A character a token at most, so that each text is about a quarter of the batch or less, or of the context.
            length = min(tokens // 4, CONTEXT)
            texts = [words[start:start + length] for start in range(0, tokens - length + 1, length)]
            shares = []
            for _ in range(arguments.runs[min(index, len(arguments.runs) - 1)]):
                forget(arguments.directory)
                disk = disk_rate(arguments.directory, arguments.disk)
                forget(arguments.directory)
                seconds, scored, count, peak, scores = streamed.score(texts)
                other = 0
                if resident:
                    other, _, _, _, wanted = resident.score(texts)
                    assert scores == wanted, "the scores differ"
                shares.append(max(count / disk, other) / seconds)
                print(f"| {scored} | {seconds:.1f} | {other:.1f} | {count / 1e9:.2f} | {disk / 1e6:,.0f} | {count / seconds / 1e6:,.0f} | "
                      f"{shares[-1]:.0%} | {peak / 1e6:,.0f} |", flush=True)
            print(f"{tokens} tokens: share {statistics.median(shares):.0%} by median, {min(shares):.0%} to {max(shares):.0%}")
    if resident:
        print("the scores are equal in every digit")


if __name__ == "__main__":
    main()
