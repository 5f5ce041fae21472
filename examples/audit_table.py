#!/usr/bin/env python3
"""Prints an audit as a table, with the gap between members and non-members by position: `python3 examples/audit_table.py answer.json`.

The file contains the response of `/v1/audits`, or the output of `pdr-audit audit --format json`. Needs no package.
"""
import json, sys


def number(value, width, form=".3f"):
    return f"{'-' if value is None else format(value, form):>{width}}"


def row(method, width):
    versus = method.get("versus_baseline")
    values = [method.get("auroc"), method.get("auroc_standard_error"), *(point["tpr"] for point in method.get("tpr_at_fpr", []))]
    line = f"{method['label']:{width}}" + "".join(number(value, 10) for value in values)
    return line + number(versus["delta"], 14, "+.3f") + number(versus.get("p_value"), 7) if versus else line


def position_gaps(profile):
    """How much more likely the tokens of members are, by position, as far as every text extends."""
    classes = ("members", "non_members")
    for position in profile:
        if any(name not in position or position[name]["count"] < profile[0][name]["count"] for name in classes):
            return
        yield position["members"]["mean_lp"] - position["non_members"]["mean_lp"]


def main():
    with open(sys.argv[1]) as file:
        answer = json.load(file)
    results = answer.get("results", answer)
    if results is None:
        sys.exit(f"the audit is {answer['status']}: {answer['error'] and answer['error']['detail']}")
    targets = results["provenance"]["request"]["metrics"]["fpr_targets"]
    width = max(len(method["label"]) for method in results["methods"])
    heading = ["AUROC", "s.e.", *(f"TPR@{100 * target:g}%" for target in targets)]
    print(f"{'method':{width}}" + "".join(f"{title:>10}" for title in heading) + f"{'vs. baseline':>14}{'p':>7}")
    for method in results["methods"]:
        print(row(method, width))
    gaps = list(position_gaps(results["position_profile"]))
    tens = [sum(gaps[start : start + 10]) / 10 for start in range(0, len(gaps) - 9, 10)]
    if tens:
        print("\nmembers minus non-members by ten positions, nats:", *(f"{gap:.2f}" for gap in tens))
    for warning in results["warnings"]:
        print(f"warning: {warning['detail']}")


if __name__ == "__main__":
    main()
