"""Adds mean and variance of the log-probability to the prompt log-probabilities of vLLM.

A plugin of vLLM (entry point `vllm.general_plugins`). Where a request asks for `prompt_logprobs: 3`, the entries of ranks 2 and 3 at each position
are replaced: rank 2 holds the mean over the vocabulary of the log-probability, weighted by the probability, and rank 3 minus its variance. Their
ids are the two smallest ones that are neither the token that came nor the most probable one. The first one and the token are as ever. Requests that
ask for another number are not touched.
"""
import functools
import logging
import os

import torch

#: Versions of vLLM that this was seen to work with.
TESTED = ("0.32.0",)
#: How many prompt log-probabilities a request asks for that wants the moments.
WANTED = 3


def moments(logprobs):
    """Mean and variance of the log-probability at each position, `[positions]` each; a token that is impossible counts as 0."""
    probabilities = logprobs.exp()
    finite = torch.where(probabilities > 0, logprobs, torch.zeros_like(logprobs))
    mean = (probabilities * finite).sum(-1)
    variance = (probabilities * (finite - mean.unsqueeze(-1)) ** 2).sum(-1)
    return mean, variance


def with_moments(gather):
    """The function of the sampler that picks log-probabilities, with moments where three are wanted."""

    @functools.wraps(gather)
    def gathered(logprobs, num_logprobs, token_ids, *rest, **more):
        tensors = gather(logprobs, num_logprobs, token_ids, *rest, **more)
        if num_logprobs != WANTED:
            return tensors
        ids, values, *others = tensors
        mean, variance = moments(logprobs)
        # Of four ids at most two are taken by the token and the first choice.
        spare = torch.arange(4, device=ids.device, dtype=ids.dtype).expand(ids.shape[0], 4)
        is_taken = (spare == ids[:, :1]) | (spare == ids[:, 1:2])
        order = torch.argsort(is_taken.to(torch.int8), dim=-1, stable=True)
        spare = spare.gather(-1, order)
        ids, values = ids.clone(), values.clone()
        ids[:, 2:4] = spare[:, :2]
        values[:, 2], values[:, 3] = mean, -variance
        return type(tensors)(ids, values, *others)

    return gathered


def register():
    """Called by vLLM in each of its processes."""
    if os.environ.get("VLLM_USE_V2_MODEL_RUNNER", "") == "1":
        raise RuntimeError("pdr-audit-moments works with vLLM's V1 model runner alone: set VLLM_USE_V2_MODEL_RUNNER=0")
    import vllm
    from vllm.v1.sample.sampler import Sampler

    if vllm.__version__.split("+")[0] not in TESTED:
        logging.getLogger(__name__).warning("not tried with vLLM %s, but with %s", vllm.__version__, ", ".join(TESTED))
    if not getattr(Sampler.gather_logprobs, "_pdr_audit", False):
        gather = with_moments(Sampler.gather_logprobs)
        gather._pdr_audit = True
        Sampler.gather_logprobs = staticmethod(gather)
