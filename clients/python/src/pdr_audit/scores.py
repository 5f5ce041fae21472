"""The answer of ``/v1/score``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from .types import TextResult

if TYPE_CHECKING:
    import pandas


class Scores:
    """The scores of texts, in the order in which they were given."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        #: The answer as the service gave it.
        self.answer = answer
        #: One result a text.
        self.results = cast("list[TextResult]", answer["results"])

    @property
    def labels(self) -> list[str]:
        """The labels of the methods."""
        return [method["label"] for method in self.answer["methods"]]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[TextResult]:
        return iter(self.results)

    def __getitem__(self, index: int) -> TextResult:
        return self.results[index]

    def to_frame(self) -> pandas.DataFrame:
        """One row a text and one column a method; a score that could not be computed is missing. Needs pandas.

        With a calibration, a column ``p_value_`` and the label has the p-values of a method.
        """
        import pandas

        columns = ["id", "scored_tokens", "truncated"]
        rows = [
            {name: result.get(name) for name in columns}
            | result["scores"]
            | {f"p_value_{label}": value for label, value in result.get("p_values", {}).items()}
            for result in self.results
        ]
        index = pandas.Index([result["index"] for result in self.results], name="index")
        p_values = [f"p_value_{label}" for label in self.labels] if self.answer.get("calibration") else []
        return pandas.DataFrame(rows, index=index, columns=[*columns, *self.labels, *p_values])
