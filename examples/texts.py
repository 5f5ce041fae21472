"""What a report says of the texts alone, recomputed from the texts: the words, the lengths and the classifier that compares the lists.

`recompute.py` uses it where it is given the texts. The definitions are those of docs/verdict.md. Needs NumPy.
"""
import math, re, zlib
from collections import Counter

import numpy as np

FOLDS, MASK = 5, (1 << 64) - 1


def folds(labels, clusters):
    """The i-th cluster of a label, by first appearance, is in fold i mod 5. A cluster has the label of its first text."""
    counts, fold = [0, 0], {}
    for label, cluster in zip(labels, clusters):
        if cluster not in fold:
            fold[cluster] = counts[label] % FOLDS
            counts[label] += 1
    return np.array([fold[cluster] for cluster in clusters])


def presence(sets):
    """A row for each set, with 1 for each of its items."""
    numbers = {}
    for items in sets:
        for item in items:
            numbers.setdefault(item, len(numbers))
    rows = np.zeros((len(sets), len(numbers)), dtype=np.float32)
    for row, items in zip(rows, sets):
        row[[numbers[item] for item in items]] = 1
    return rows


def fitted_odds(rows, members, training, scored):
    """Log-odds of the scored rows by multinomial naive Bayes with add-one smoothing."""
    parts = []
    for label in (True, False):
        of_class = rows[training & (members == label)]
        counts = of_class.sum(axis=0, dtype=np.float64) + 1
        parts.append((math.log(len(of_class)), np.log(counts) - math.log(counts.sum())))
    (prior, weights), (other_prior, other_weights) = parts
    return prior - other_prior + rows[scored].astype(np.float64) @ (weights - other_weights)


def naive_bayes(rows, members, fold, left_out=None):
    """Log-odds of each text by a model without the text's fold, and without the fold that is left out."""
    odds = np.zeros(len(rows))
    for held in range(FOLDS):
        odds[fold == held] = fitted_odds(rows, members, (fold != held) & (fold != left_out), fold == held)
    return odds


def ridge(kernel, members, training, scored):
    """Log-odds of the scored rows by logistic regression with half the squared weights as penalty and a free intercept, from inner products."""
    inner, truth, n = kernel[np.ix_(training, training)], members[training].astype(float), len(training)
    weights, intercept = np.zeros(n), 0.0
    for _ in range(100):
        odds = inner @ weights + intercept
        share = 1 / (1 + np.exp(-odds))
        curvature = np.maximum(share * (1 - share), 1e-12)
        system = np.block([[inner + np.diag(1 / curvature), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
        solved = np.linalg.solve(system, np.append(odds + (truth - share) / curvature, 0))
        change = max(np.abs(solved[:-1] - weights).max(), abs(solved[-1] - intercept))
        weights, intercept = solved[:-1], solved[-1]
        if change < 1e-11 * max(1, np.abs(weights).max()):
            return kernel[np.ix_(scored, training)] @ weights + intercept
    raise ArithmeticError("the regression does not converge")


def out_of_fold(fold, fit):
    odds = np.zeros(len(fold))
    for held in range(FOLDS):
        training, scored = np.nonzero(fold != held)[0], np.nonzero(fold == held)[0]
        odds[scored] = fit(held, training, scored)
    return odds


def scramble(value):
    """The output function of SplitMix64 (Steele, Lea and Flood 2014)."""
    value = value + 0x9E3779B97F4A7C15 & MASK
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


def hashed(data):
    value = scramble(len(data))
    for start in range(0, len(data), 8):
        value = scramble(value ^ int.from_bytes(data[start:start + 8].ljust(8, b"\0"), "little"))
    return value


class Texts:
    """Distinct texts with their labels, clusters and groups (numbers), scored tokens and the control's measures (a column each, or none)."""

    def __init__(self, texts, members, clusters, strata, tokens, control):
        self.members, self.clusters, self.strata = members, clusters, strata
        self.fold = folds(members.astype(int), clusters)
        listed = [[word.lower() for word in re.findall(r"\w+", text)] for text in texts]
        self.words = [list(dict.fromkeys(words))[:min(1000, max(16, 16_000_000 // len(texts)))] for words in listed]
        self.word_rows = presence(self.words)
        self.present = {"words": self.word_rows}
        length = min(4000, max(100, 40_000_000 // len(texts)))
        self.ngrams = [list({text[:length][at:at + n] for n in (1, 2, 3) for at in range(len(text[:length]) - n + 1)}) for text in texts]
        self.present["characters"] = presence(self.ngrams)
        self.bytes = np.array([len(text.encode()) for text in texts], dtype=float)
        self.zlib = np.array([len(zlib.compress(text.encode())) for text in texts], dtype=float)
        tokens = np.where(tokens > 0, tokens, np.nan)
        self.measures = {
            **{name: naive_bayes(rows, members, self.fold) for name, rows in self.present.items()},
            "tokens": np.log(tokens),
            "bytes_per_token": self.bytes / tokens,
            "bytes_per_zlib_byte": self.bytes / self.zlib,
            "unique_words": self.unique(self.words),
            "unique_characters": self.unique([[ngram for ngram in ngrams if len(ngram) == 3] for ngrams in self.ngrams]),
            "word_order": self.word_order(listed),
            **control,
        }
        self.log_odds = self.classifier()

    @staticmethod
    def unique(sets):
        counts = Counter(item for items in sets for item in items)
        return np.array([np.mean([counts[item] == 1 for item in items]) if items else np.nan for items in sets])

    @staticmethod
    def word_order(listed):
        """The log-ratios of a text's pairs of words, summed and divided by the sum of their absolute values. A pair is known by its place
        in a table, which differs in the lowest bit from that of the same words the other way round."""
        slots = 1 << (min(max(4096 * len(listed), 1 << 16), 1 << 27) - 1).bit_length()
        most = min(1000, max(16, 16_000_000 // len(listed)))
        place = lambda a, b: hashed(" ".join(sorted((a, b))).encode()) & slots - 2 | (a > b)
        places = [sorted({place(a, b) for a, b in zip(words[:2 * most], words[1:2 * most]) if a != b})[:most] for words in listed]
        counts = Counter(place for all_of_text in places for place in all_of_text)
        orders = []
        for own in map(set, places):
            ratios = np.array([math.log(min(255, counts[p]) / (min(255, counts[p ^ 1]) - (p ^ 1 in own) + 1)) for p in own])
            total = np.abs(ratios).sum()
            orders.append(ratios.sum() / total if total else np.nan)
        return np.array(orders)

    def classifier(self):
        measured = {name: column for name, column in self.measures.items() if not np.all(np.isnan(column))}

        def fit(held, training, scored):
            # The log-odds of the texts that the regression is fitted on come from models without the scored texts too.
            nested = {name: naive_bayes(rows, self.members, self.fold, held) for name, rows in self.present.items()}
            features = []
            for column in (measured | nested).values():
                known = training[~np.isnan(column[training])]
                if not len(known):
                    features += [np.zeros(len(column))] * 2
                    continue
                overall, by_group = column[known].mean(), {}
                for stratum in np.unique(self.strata[known]):
                    by_group[stratum] = column[known[self.strata[known] == stratum]].mean()
                means = np.array([by_group.get(stratum, overall) for stratum in self.strata])
                deviation = math.sqrt(np.mean((column[known] - means[known]) ** 2))
                varies = deviation > 1e-12 * np.abs(column[known]).max()
                standard = np.where(np.isnan(column), 0, (column - means) / deviation) if varies else np.zeros(len(column))
                features += [standard, standard * standard]
            rows = np.column_stack(features)
            return ridge(rows @ rows.T, self.members, training, scored)

        return out_of_fold(self.fold, fit)
