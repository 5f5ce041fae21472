"""Checks the plugin of deploy/vllm without vLLM: python tests/interop/vllm_moments.py [SITE]

The functions that the plugin wraps are replaced by ones of the same form, and the moments are compared with those of NumPy in f64. With SITE, a
directory with the sources of a vLLM (its wheel, unpacked), their signatures are compared with the form that the plugin takes them to have.
Needs torch and NumPy. Run by hand.
"""
import ast
import collections
import importlib.util
import pathlib
import sys

import numpy
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("plugin", ROOT / "deploy/vllm/pdr_audit_moments.py")
plugin = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plugin)

Tensors = collections.namedtuple("Tensors", "logprob_token_ids logprobs selected_token_ranks")
VOCABULARY = 50


def pick(logprobs, num_logprobs, token_ids):
    """As vLLM picks: the token, then the most probable ones."""
    values, ids = logprobs.topk(num_logprobs, dim=-1)
    token_ids = token_ids.unsqueeze(-1)
    came = logprobs.gather(-1, token_ids)
    ranks = (logprobs >= came).sum(-1)
    return Tensors(torch.cat((token_ids, ids), 1).to(torch.int32), torch.cat((came, values), 1), ranks)


def compute_topk_scores(logits, num_logprobs, token_ids, logits_mode=False):
    return pick(logits if logits_mode else logits.float().log_softmax(-1), num_logprobs, token_ids)


class Worker:
    """As the worker of the V2 model runner: one batch of requests, each with its rows."""

    def __init__(self, wanted, rows):
        self.uses_prompt_logprobs = numpy.array([number is not None for number in wanted])
        self.num_prompt_logprobs = numpy.array([number or 0 for number in wanted], dtype=numpy.int32)
        self.rows = rows

    def compute_prompt_logprobs(self, logits, token_ids):
        needed = numpy.flatnonzero(self.uses_prompt_logprobs)
        if not len(needed):
            return {}
        tensors = scored(logits, int(self.num_prompt_logprobs[needed].max()), token_ids, logits_mode=False)
        width = {index: self.num_prompt_logprobs[index] + 1 for index in needed}
        return {
            index: Tensors(*(column[self.rows[index]][:, : width[index]] for column in tensors[:2]), tensors[2][self.rows[index]])
            for index in needed
        }


def expected(logits):
    logits = logits.double().numpy()
    logprobs = logits - numpy.log(numpy.exp(logits).sum(-1, keepdims=True))
    mean = (numpy.exp(logprobs) * logprobs).sum(-1)
    return mean, (numpy.exp(logprobs) * (logprobs - mean[:, None]) ** 2).sum(-1)


def check(tensors, logits, token_ids):
    plain = pick(logits.float().log_softmax(-1), 1, token_ids)
    assert torch.equal(tensors[0][:, :2], plain[0]) and torch.equal(tensors[1][:, :2], plain[1])
    assert all(len(set(row)) >= 3 and set(row[2:]) <= {0, 1, 2, 3} for row in tensors[0].tolist())
    mean, variance = expected(logits)
    # f32 over 50 terms.
    assert abs(tensors[1][:, 2].numpy() - mean).max() < 1e-5 and abs(-tensors[1][:, 3].numpy() - variance).max() < 1e-5


torch.manual_seed(0)
logits = torch.randn(600, VOCABULARY) * 3
ids = torch.randint(0, VOCABULARY, (600,))
gathered = plugin.gathering(pick)
scored = plugin.scoring(compute_topk_scores)

logprobs = logits.log_softmax(-1)
assert torch.equal(gathered(logprobs, 3, ids)[1], pick(logprobs, 3, ids)[1]), "generated tokens are not touched"
check(plugin.of_prompts(gathered)(logprobs, 3, ids), logits, ids)
assert torch.equal(plugin.of_prompts(gathered)(logprobs, 2, ids)[1], pick(logprobs, 2, ids)[1])

compute = plugin.in_two_parts(Worker.compute_prompt_logprobs)
rows = [slice(0, 100), slice(100, 300), slice(300, 301), slice(301, 600)]
worker = Worker([3, 5, None, 3], rows)
uses = worker.uses_prompt_logprobs.copy()
answers = compute(worker, logits, ids)
assert sorted(answers) == [0, 1, 3] and (worker.uses_prompt_logprobs == uses).all()
for index in (0, 3):
    check(answers[index], logits[rows[index]], ids[rows[index]])
assert torch.equal(answers[1][1], pick(logits.log_softmax(-1), 5, ids)[1][rows[1]]), "other requests are not touched"

for version in ("0.32.0", "0.33.0", "0.33.1+cu130"):
    plugin.check_version(version)
for version in ("0.31.9", "0.34.0", "1.0.0"):
    try:
        plugin.check_version(version)
    except RuntimeError as error:
        assert version in str(error)
    else:
        raise AssertionError(version)


def parameters(file, function):
    tree = ast.parse((pathlib.Path(sys.argv[1]) / file).read_text())
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function]
    assert len(found) == 1, (file, function, len(found))
    return [argument.arg for argument in found[0].args.args]


if len(sys.argv) > 1:
    forms = [
        ("vllm/v1/sample/sampler.py", "gather_logprobs", ["logprobs", "num_logprobs", "token_ids"]),
        ("vllm/v1/worker/gpu_model_runner.py", "_get_prompt_logprobs_dict", ["self"]),
        ("vllm/v1/worker/gpu/sample/logprob.py", "compute_topk_scores", ["logits", "num_logprobs", "sampled_token_ids"]),
        ("vllm/v1/worker/gpu/sample/prompt_logprob.py", "compute_prompt_logprobs", ["self", "logits_fn"]),
    ]
    for file, function, first in forms:
        got = parameters(file, function)
        assert got[: len(first)] == first, (function, got)
    worker = (pathlib.Path(sys.argv[1]) / "vllm/v1/worker/gpu/sample/prompt_logprob.py").read_text()
    assert "self.uses_prompt_logprobs[idx_mapping_np]" in worker and "= compute_topk_scores(" in worker
print("the plugin gives the moments of NumPy, and touches nothing else")
