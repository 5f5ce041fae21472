"""Windows of texts under a model, by transformers: the numbers of `tests/it/memorization.rs`.

    python3 tests/interop/extraction_windows.py DIRECTORY PREFIX SUFFIX STRIDE < texts.jsonl

Reads lines with `text`. Prints of each text how many tokens it has, and of each window where it begins, where its suffix begins
and where it ends, in code points, the log-probability of the suffix, and whether greedy decoding gives it. Made with transformers
5.23 and torch 2.15 on the CPU, in f32.
"""

import json
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def main():
    directory, prefix, suffix, stride = sys.argv[1], *map(int, sys.argv[2:5])
    tokenizer = AutoTokenizer.from_pretrained(directory)
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
    for line in sys.stdin:
        encoded = tokenizer(json.loads(line)["text"], return_offsets_mapping=True, return_special_tokens_mask=True)
        special = encoded["special_tokens_mask"]
        before = special.index(0)
        ids, offsets = encoded["input_ids"][before:], encoded["offset_mapping"][before:]
        print(len(ids))
        for start in range(0, len(ids) - prefix - suffix + 1, stride):
            end = start + prefix + suffix
            window = encoded["input_ids"][:before] + ids[start:end]
            with torch.no_grad():
                log_probabilities = torch.log_softmax(model(torch.tensor([window])).logits[0].double(), -1)
            places = range(len(window) - suffix, len(window))
            log_p = sum(log_probabilities[place - 1, window[place]].item() for place in places)
            greedy = all(log_probabilities[place - 1].argmax().item() == window[place] for place in places)
            print((offsets[start][0], offsets[start + prefix][0], offsets[end - 1][1], log_p, greedy))


main()
