"""The cases that run.py measures: shapes, lengths of texts, types, and targets."""
import dataclasses, json, random, struct


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    model: str  # the name of its directory
    words: int | None  # per text; None: 8 to 512, shuffled
    dtype: str  # the type that pdr-audit computes in
    ratio: float | None  # target: relative to the better of the peer's modes in f32
    share: float | None  # target: share of the rate of the kernel used
    ratio_bf16: float | None = None  # target: relative to the peer in bf16
    device: str = "cpu"

    @property
    def peer_dtypes(self):
        """The types in which the peer runs."""
        if self.device == "cuda":
            return (self.dtype,) if self.dtype == "bf16" else (self.dtype, "medium")
        return ("f32", "medium", "bf16") if self.ratio_bf16 else ("f32", "medium")


CASES = [
    Case("pythia-70m, 64 words", "pythia-70m", 64, "f32", 2.2, 0.80),
    Case("pythia-160m, 128 words", "pythia-160m", 128, "f32", 1.6, 0.80),
    Case("llama-160m, 64 words", "llama-160m", 64, "f32", 1.5, 0.75),
    Case("mamba-130m, 64 words", "mamba-130m", 64, "f32", 2.5, None),
    Case("pythia-70m, 8 to 512 words", "pythia-70m", None, "f32", 2.2, 0.75),
    Case("pythia-160m stored in bf16, 128 words, f32 results", "pythia-160m-bf16", 128, "f32", 2.7, 0.75),
    Case("pythia-160m, 128 words, `dtype = \"bf16\"`", "pythia-160m-bf16", 128, "bf16", 4.5, 0.60, 1.6),
    Case("pythia-160m, 128 words, GPU", "pythia-160m", 128, "f32", None, None, device="cuda"),
    Case("mamba-130m, 64 words, GPU", "mamba-130m", 64, "f32", None, None, device="cuda"),
    Case("pythia-1.4b, 128 words, `dtype = \"bf16\"`, GPU", "pythia-1.4b", 128, "bf16", None, None, device="cuda"),
    Case("pythia-1.4b, 8 to 512 words, `dtype = \"bf16\"`, GPU", "pythia-1.4b", None, "bf16", None, None, device="cuda"),
    Case("pythia-6.9b, 128 words, `dtype = \"bf16\"`, GPU", "pythia-6.9b", 128, "bf16", None, None, device="cuda"),
]


def cut(words, case, count):
    """Cuts `count` texts of a case out of a list of words, which is repeated as often as needed."""
    lengths = random.Random(0)
    texts, start = [], 0
    for _ in range(count):
        # As many short texts as long ones, by order of magnitude.
        length = case.words or round(8 * 64 ** lengths.random())
        texts.append(" ".join(words[(start + i) % len(words)] for i in range(length)))
        start += length
    return texts


def products(model):
    """Multiplications per token by the weights of the layers, and by those of the head, from the header of the file."""
    with open(model / "model.safetensors", "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    config = json.loads((model / "config.json").read_text())
    inputs_only = ("embed", "wpe", "lm_head", "A_log")
    matrices = {name: tensor["shape"] for name, tensor in header.items() if len(tensor.get("shape", [])) == 2}
    layers = sum(n * k for name, (n, k) in matrices.items() if not any(part in name for part in inputs_only))
    return layers, config["vocab_size"] * config["hidden_size"]
