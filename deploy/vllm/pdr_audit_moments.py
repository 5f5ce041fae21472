"""Adds mean and variance of the log-probability to the prompt log-probabilities of vLLM.

A plugin of vLLM (entry point `vllm.general_plugins`). Where a request asks for `prompt_logprobs: 3`, the entries of ranks 2 and 3 at each position
are replaced: rank 2 holds the mean over the vocabulary of the log-probability, weighted by the probability, and rank 3 minus its variance. Their
ids are the two smallest ones that are neither the token that came nor the most probable one, which are as ever. Requests for another number of
prompt log-probabilities, and log-probabilities of generated tokens, are not touched.

vLLM has two model runners, and chooses one for each model; both are wrapped. Versions outside of `FIRST` to `LAST` are refused.
"""
import contextlib
import functools
import re

import torch

#: The versions of vLLM whose functions are those that are wrapped here, by their sources: the first, and the last by its first two numbers.
FIRST = (0, 32, 0)
LAST = (0, 33)
#: How many prompt log-probabilities a request asks for that wants the moments.
WANTED = 3
#: Positions whose moments are computed at once: a row is as long as the vocabulary.
ROWS = 256


def moments(logprobs):
    """Mean and variance of the log-probability at each position, `[positions]` each; a token that is impossible counts as 0."""
    columns = [[], []]
    for rows in logprobs.split(ROWS):
        probabilities = rows.exp()
        finite = torch.where(probabilities > 0, rows, torch.zeros_like(rows))
        mean = (probabilities * finite).sum(-1)
        columns[0].append(mean)
        columns[1].append((probabilities * (finite - mean.unsqueeze(-1)) ** 2).sum(-1))
    return torch.cat(columns[0]), torch.cat(columns[1])


def with_moments(tensors, mean, variance):
    """The ids and log-probabilities that vLLM picked, `[positions, 4]`, with the moments in place of the second and the third choice."""
    ids, values, *others = tensors
    # Of four ids at most two are taken by the token and the first choice.
    spare = torch.arange(4, device=ids.device, dtype=ids.dtype).expand(ids.shape[0], 4)
    is_taken = (spare == ids[:, :1]) | (spare == ids[:, 1:2])
    order = torch.argsort(is_taken.to(torch.int8), dim=-1, stable=True)
    spare = spare.gather(-1, order)
    ids, values = ids.clone(), values.clone()
    ids[:, 2:4] = spare[:, :2]
    values[:, 2], values[:, 3] = mean, -variance
    return type(tensors)(ids, values, *others)


#: Whether vLLM picks log-probabilities of a prompt whose request wants moments, or may want them. It runs the model in one thread of a process.
in_prompt = False


@contextlib.contextmanager
def prompts(wanted):
    """Notes for the time of a call whether the log-probabilities that are picked are those of prompts."""
    global in_prompt
    before, in_prompt = in_prompt, wanted
    try:
        yield
    finally:
        in_prompt = before


# The V1 model runner asks the sampler about each prompt by itself.


def gathering(gather):
    """`Sampler.gather_logprobs` with moments where three are wanted of a prompt; it is given log-probabilities."""

    @functools.wraps(gather)
    def gathered(logprobs, num_logprobs, token_ids, *rest, **more):
        tensors = gather(logprobs, num_logprobs, token_ids, *rest, **more)
        if not in_prompt or num_logprobs != WANTED:
            return tensors
        return with_moments(tensors, *moments(logprobs))

    return gathered


def of_prompts(function):
    """`GPUModelRunner._get_prompt_logprobs_dict`, which notes that the sampler is asked about prompts."""

    @functools.wraps(function)
    def noted(*arguments, **more):
        with prompts(True):
            return function(*arguments, **more)

    return noted


# The V2 model runner picks for all prompts of a step at once, as many as the request with the most wants.


def scoring(compute):
    """`compute_topk_scores` with moments where three are wanted of prompts; it is given logits."""

    @functools.wraps(compute)
    def computed(logits, num_logprobs, token_ids, *rest, **more):
        tensors = compute(logits, num_logprobs, token_ids, *rest, **more)
        if not in_prompt or num_logprobs != WANTED or more.get("logits_mode"):
            return tensors
        columns = [moments(torch.log_softmax(rows.float(), -1)) for rows in logits.split(ROWS)]
        mean, variance = (torch.cat(column) for column in zip(*columns))
        return with_moments(tensors, mean, variance)

    return computed


def in_two_parts(compute):
    """`PromptLogprobsWorker.compute_prompt_logprobs`, by itself for the requests that want moments: the others are answered as ever."""

    @functools.wraps(compute)
    def computed(worker, *arguments, **more):
        uses = worker.uses_prompt_logprobs
        wanting = uses & (worker.num_prompt_logprobs == WANTED)
        answers = {}
        try:
            for part, wanted in ((wanting, True), (uses & ~wanting, False)):
                worker.uses_prompt_logprobs = part
                with prompts(wanted):
                    answers.update(compute(worker, *arguments, **more))
        finally:
            worker.uses_prompt_logprobs = uses
        return answers

    return computed


def check_version(version):
    """Refuses versions of vLLM that the plugin is not known to fit."""
    numbers = tuple(int(number) for number in re.findall(r"\d+", version.split("+")[0])[:3])
    if not (FIRST <= numbers and numbers[:2] <= LAST):
        first, last = (".".join(map(str, bound)) for bound in (FIRST, LAST))
        raise RuntimeError(
            f"pdr-audit-moments fits vLLM {first} to {last}.x, and this is {version}: install one of those, or uninstall pdr-audit-moments and set "
            "`moments = false`"
        )


def register():
    """Called by vLLM in each of its processes, perhaps more than once."""
    import vllm

    check_version(vllm.__version__)
    from vllm.triton_utils import HAS_TRITON
    from vllm.v1.sample.sampler import Sampler
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    if hasattr(Sampler, "pdr_audit_moments"):
        return
    Sampler.gather_logprobs = staticmethod(gathering(Sampler.gather_logprobs))
    GPUModelRunner._get_prompt_logprobs_dict = of_prompts(GPUModelRunner._get_prompt_logprobs_dict)
    # Without Triton, vLLM has its V1 model runner alone.
    if HAS_TRITON:
        from vllm.v1.worker.gpu.sample import prompt_logprob

        prompt_logprob.compute_topk_scores = scoring(prompt_logprob.compute_topk_scores)
        worker = prompt_logprob.PromptLogprobsWorker
        worker.compute_prompt_logprobs = in_two_parts(worker.compute_prompt_logprobs)
    Sampler.pdr_audit_moments = True
