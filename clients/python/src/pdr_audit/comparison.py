"""How two audits differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from .types import MethodDifference

if TYPE_CHECKING:
    import pandas


class Comparison:
    """How audit ``b`` differs from audit ``a`` on the samples that both have."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        #: The answer as the service gave it.
        self.answer = answer
        #: What was found of each method that both audits have.
        self.methods = cast("list[MethodDifference]", answer["methods"])

    def __getitem__(self, label: str) -> MethodDifference:
        """What was found of the method of this label."""
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
