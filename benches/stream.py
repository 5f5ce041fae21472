#!/usr/bin/env python3
"""Measures how fast a model is whose layers are read from disk in every forward pass, and how much memory it takes.

    cargo build --release
    python3 benches/stream.py DIRECTORY --tokenizer TOKENIZER.json [--layers 36] [--tokens 512] [--memory 6GiB] [--resident] [--runs 3]

Makes a random checkpoint of the shape of pythia-12b in bf16 in DIRECTORY, unless there is one, with fewer layers if so wished: 1 GB and 0.63 GB a
layer, in shards. Each run starts the service with `layers = "stream"` and scores texts of `--tokens` tokens in one batch, after the pages of the
files have left the page cache; with `--resident` a run with all layers in memory follows, and the scores of both must be equal in every digit.
The rate of the disk is that of one reader of the same files by O_DIRECT, 16 MiB at a time. Linux only; needs numpy.
"""
import argparse, json, mmap, os, pathlib, re, shutil, time
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


def disk_rate(directory):
    """Bytes a second of one reader."""
    block, total, start = mmap.mmap(-1, 16 << 20), 0, time.monotonic()
    for file in weights(directory):
        handle = os.open(file, os.O_RDONLY | os.O_DIRECT)
        position = 0
        while count := os.preadv(handle, [block], position):
            total += count
            position += count
            if count % 4096:
                break
        os.close(handle)
    return total / (time.monotonic() - start)


def run(arguments, layers, texts):
    """Seconds of the pass, peak bytes of the process, bytes that it read, and scores."""
    config = (f'[server]\nrequest_timeout = "1h"\nbody_limit = "32MiB"\n[engine]\nmemory = "{arguments.memory if layers == "stream" else "64GiB"}"\n'
              f'cache = 0\nmax_batch_tokens = {max(2048, 2 * arguments.tokens)}\n'
              f'[[models]]\nid = "m"\nsource = {json.dumps(str(arguments.directory.absolute()))}\nlayers = "{layers}"\n')
    with Service(arguments.program, config) as service:
        service.wait(lambda: service.call("GET", "/readyz")["ready"])
        entry = service.call("GET", "/v1/models")["models"][0]
        forget(arguments.directory)
        read = lambda: int(re.search(r"read_bytes: (\d+)", pathlib.Path(f"/proc/{service.process.pid}/io").read_text())[1])
        before, start = read(), time.monotonic()
        answer = service.call("POST", "/v1/score", {"model": "m", "inputs": texts, "methods": ["loss", "min_k_plus_plus"]})
        seconds = time.monotonic() - start
        peak = 1024 * int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{service.process.pid}/status").read_text())[1])
        tokens = sum(result["scored_tokens"] + 1 for result in answer["results"])
        return seconds, peak, read() - before, tokens, entry["weight_bytes"], [result["scores"] for result in answer["results"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--tokenizer", type=pathlib.Path, help="tokenizer.json of any model with at most 50,688 tokens")
    parser.add_argument("--layers", type=int, default=36)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--memory", default="6GiB")
    parser.add_argument("--resident", action="store_true")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--program", default="target/release/pdr-audit")
    arguments = parser.parse_args()
    if not arguments.directory.exists():
        make(arguments.directory, arguments.layers, arguments.tokenizer)
    size = sum(file.stat().st_size for file in weights(arguments.directory))
    # A character a token at most, so that each text is about a quarter of the batch or less.
    words = numpy.random.default_rng(3).integers(97, 123, 1 << 20).astype(numpy.uint8).tobytes().decode()
    length = arguments.tokens // 4
    texts = [words[index * length:(index + 1) * length] for index in range(4)]
    forget(arguments.directory)
    print(f"{size / 1e9:.2f} GB; one reader by O_DIRECT: {disk_rate(arguments.directory) / 1e6:,.0f} MB/s")
    print("| layers | tokens | pass, s | tokens/s | read, MB/s | read, GB | peak, MB | weights by the books, MB |\n" + "|---" * 8 + "|")
    for _ in range(arguments.runs):
        scores = []
        for layers in ["stream"] + ["resident"] * arguments.resident:
            seconds, peak, read, tokens, promised, found = run(arguments, layers, texts)
            scores.append(found)
            rate = f"{read / seconds / 1e6:,.0f}" if layers == "stream" else ""
            print(f"| {layers} | {tokens} | {seconds:.1f} | {tokens / seconds:.2f} | {rate} | {read / 1e9:.2f} | {peak / 1e6:,.0f} | {promised / 1e6:,.0f} |", flush=True)
        assert all(found == scores[0] for found in scores), "the scores differ"
    if arguments.resident:
        print("the scores are equal in every digit")


if __name__ == "__main__":
    main()
