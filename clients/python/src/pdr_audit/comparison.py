"""The difference between two audits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from . import _html
from .types import MethodDifference

if TYPE_CHECKING:
    import pandas


class Comparison:
    """The difference of audit ``b`` from audit ``a`` on the samples that both have."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        #: The answer as the service gave it.
        self.answer = answer
        #: The differences of each method that both audits have.
        self.methods = cast("list[MethodDifference]", answer["methods"])

    def __getitem__(self, label: str) -> MethodDifference:
        """The differences of the method of this label."""
        for method in self.methods:
            if method["label"] == label:
                return method
        raise KeyError(label)

    def __repr__(self) -> str:
        a, b, paired = (self.answer["a"]["id"], self.answer["b"]["id"], self.answer["samples"]["paired"])
        return f"<Comparison {a} {b} {paired} samples>"

    def to_frame(self) -> pandas.DataFrame:
        """One row a method, by its label. Needs pandas."""
        import pandas

        columns = ["scored", "auroc_a", "auroc_b", "delta", "standard_error", "p_value", "mean_difference"]
        index = pandas.Index([method["label"] for method in self.methods], name="method")
        frame = pandas.DataFrame([dict(method) for method in self.methods], index=index, columns=columns)
        # With labels there are differences of AUROC, and without them of the scores.
        return frame.dropna(axis="columns", how="all")

    def _repr_html_(self) -> str:
        rows = [
            [
                method["label"],
                *(_html.number(method.get(name)) for name in ("scored", "auroc_a", "auroc_b", "delta")),
                _html.interval(method.get("interval")),
                _html.p_value(method.get("p_value")),
                _html.number(method.get("mean_difference")),
            ]
            for method in self.methods
        ]
        interval = f"{_html.level(_html.path(self.answer, 'bootstrap', 'confidence'))}interval"
        tested = ["AUROC of a", "AUROC of b", "difference", interval, "p-value (not adjusted)"]
        a, b = (str(_html.path(self.answer, side, "id")) for side in ("a", "b"))
        has_p_values = any(method.get("p_value") is not None for method in self.methods)
        parts = [
            _html.paragraph(f"a: {a}, b: {b}"),
            _html.table(["method", "scored", *tested, "mean difference"], rows),
            _html.paragraph(P_VALUES) if has_p_values else "",
        ]
        return f"<div>{''.join(parts)}</div>"


#: A note on the p-values of a comparison.
P_VALUES = (
    "p-values: two-sided, of a difference of 0. They are not adjusted for the number of methods: of many, some are low by "
    "chance."
)
