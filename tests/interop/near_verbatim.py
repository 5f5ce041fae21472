#!/usr/bin/env python3
"""Near-verbatim blocks by Python's difflib and the equations of arXiv 2601.02671, Section 3.3.1, for pairs of small texts.

    python tests/interop/near_verbatim.py tests/fixtures/near_verbatim.json      # Python 3.11, nothing else

Words are single letters, so that texts are repetitive and which of several equal runs is taken matters. `passes` are triples of the
largest gap, the largest difference of gaps and the least number of matching words; the paper's are (2, 1, 20) and (10, 3, 100).
"""
import difflib, json, random, sys

PAPER = [(2, 1, 20), (10, 3, 100)]


def merged(blocks, gap, alignment):
    """Blocks are [first start, first end, second start, second end, matching words]."""
    result = []
    for a, b, c, d, words in blocks:
        if result:
            last = result[-1]
            first, second = a - last[1], c - last[3]
            if max(first, second) <= gap and abs(first - second) <= alignment:
                last[1], last[3], last[4] = b, d, last[4] + words
                continue
        result.append([a, b, c, d, words])
    return result


def case(reference, generation, passes):
    matcher = difflib.SequenceMatcher(None, reference, generation, autojunk=False)
    matching = [[i, j, n] for i, j, n in matcher.get_matching_blocks() if n]
    blocks = [[i, i + n, j, j + n, n] for i, j, n in matching]
    for gap, alignment, least in passes:
        blocks = [block for block in merged(blocks, gap, alignment) if block[4] >= least]
    return {"reference": " ".join(reference), "generation": " ".join(generation), "matching": matching, "passes": passes,
            "blocks": blocks}


def edited(words, letters, rate, draw):
    result = []
    for word in words:
        kind = draw.random()
        if kind < rate / 3:
            continue
        result.append(draw.choice(letters) if kind < rate * 2 / 3 else word)
        if rate * 2 / 3 <= kind < rate:
            result += draw.choices(letters, k=draw.randint(1, 4))
    return result


draw = random.Random(0)
cases = []
for size, letters in [(0, "ab"), (1, "ab"), (6, "ab"), (14, "ab"), (14, "abc"), (25, "abcd"), (40, "abcdefgh"), (60, "abcdefghijklmnopqrstuvwxyz")]:
    for _ in range(6):
        reference = draw.choices(letters, k=draw.randint(0, size))
        other = draw.choices(letters, k=draw.randint(0, size))
        passes = [(draw.randint(0, 3), draw.randint(0, 2), draw.randint(0, 4)) for _ in range(draw.randint(0, 2))]
        cases.append(case(reference, other, passes))
        cases.append(case(reference, edited(reference, letters, 0.3, draw), passes))
letters = "abcdefghijklmnopqrstuvwxyz"
for rate in (0.01, 0.03, 0.06):
    reference = draw.choices(letters, k=400)
    cases.append(case(reference, edited(reference, letters, rate, draw), PAPER))
with open(sys.argv[1], "w") as out:
    out.write("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
