"""Adds mean and variance of the log-probability to the prompt log-probabilities of vLLM.

A plugin of vLLM (entry point `vllm.general_plugins`). Where a request asks for `prompt_logprobs: 3`, the entries of ranks 2 and 3 at each position
are replaced: rank 2 holds the mean over the vocabulary of the log-probability, weighted by the probability, and rank 3 minus its variance. Their
ids are the two smallest ones that are neither the token that came nor the most probable one, which are as ever. Requests for another number of
prompt log-probabilities, and log-probabilities of generated tokens, are not touched.
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


#: Whether the sampler is asked about a prompt. vLLM runs the model in one thread of a process.
in_prompt = False


def with_moments(gather):
    """The function of the sampler that picks log-probabilities, with moments where three are wanted of a prompt."""

    @functools.wraps(gather)
    def gathered(logprobs, num_logprobs, token_ids, *rest, **more):
        tensors = gather(logprobs, num_logprobs, token_ids, *rest, **more)
        if not in_prompt or num_logprobs != WANTED:
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


def of_prompts(function):
    """The function of the model runner that asks the sampler about prompts, which notes that it does."""

    @functools.wraps(function)
    def noted(*arguments, **more):
        global in_prompt
        in_prompt = True
        try:
            return function(*arguments, **more)
        finally:
            in_prompt = False

    return noted


def register():
    """Called by vLLM in each of its processes, perhaps more than once."""
    if os.environ.get("VLLM_USE_V2_MODEL_RUNNER", "") == "1":
        raise RuntimeError("pdr-audit-moments works with vLLM's V1 model runner alone: set VLLM_USE_V2_MODEL_RUNNER=0")
    import vllm
    from vllm.v1.sample.sampler import Sampler
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    if hasattr(Sampler, "pdr_audit_moments"):
        return
    if vllm.__version__.split("+")[0] not in TESTED:
        logging.getLogger(__name__).warning("not tried with vLLM %s, but with %s", vllm.__version__, ", ".join(TESTED))
    Sampler.gather_logprobs = staticmethod(with_moments(Sampler.gather_logprobs))
    GPUModelRunner._get_prompt_logprobs_dict = of_prompts(GPUModelRunner._get_prompt_logprobs_dict)
    Sampler.pdr_audit_moments = True
