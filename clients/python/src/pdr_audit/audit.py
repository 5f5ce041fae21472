"""An audit as it stands, and the scores of its samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from .events import FINAL
from .types import MethodReport, Progress, SampleScores, Status

if TYPE_CHECKING:
    import pandas


class Audit:
    """An audit as it stood when the service was asked."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        #: The answer as the service gave it.
        self.answer = answer
        self.id = cast(str, answer["id"])
        self.status = cast("Status", answer["status"])
        self.progress = cast(Progress, answer["progress"])
        #: Why it failed, as a problem.
        self.error = cast("Mapping[str, Any] | None", answer.get("error"))
        #: What it found; None until it has succeeded, and in lists.
        self.results = cast("Mapping[str, Any] | None", answer.get("results"))

    @property
    def is_final(self) -> bool:
        """Whether nothing will change any more."""
        return self.status in FINAL

    @property
    def methods(self) -> list[MethodReport]:
        """What was found of each method; empty until the audit has succeeded."""
        return cast("list[MethodReport]", self.results["methods"]) if self.results else []

    @property
    def warnings(self) -> list[str]:
        """What to mind when the numbers are read."""
        return [warning["detail"] for warning in self.results["warnings"]] if self.results else []

    def __getitem__(self, label: str) -> MethodReport:
        """What was found of the method of this label."""
        for method in self.methods:
            if method["label"] == label:
                return method
        raise KeyError(label)

    def __repr__(self) -> str:
        done, total = self.progress["done"], self.progress["total"]
        return f"<Audit {self.id} {self.status} {done}/{total}>"

    def to_frame(self) -> pandas.DataFrame:
        """One row a method, by its label. Needs pandas."""
        import pandas

        rows = [_row(method) for method in self.methods]
        return pandas.DataFrame(rows, index=pandas.Index([method["label"] for method in self.methods], name="method"))


def _row(method: MethodReport) -> dict[str, Any]:
    row: dict[str, Any] = {name: method.get(name) for name in ("scored", "auroc", "auroc_standard_error")}
    row |= {f"tpr_at_{rate['fpr']:g}_fpr": rate["tpr"] for rate in method.get("tpr_at_fpr", [])}
    row["fpr_at_95_tpr"] = method.get("fpr_at_95_tpr")
    against = method.get("versus_baseline", {})
    return row | {name: against.get(name) for name in ("baseline", "delta", "p_value")}


class AuditScores:
    """The scores of an audit's samples, in order."""

    def __init__(self, samples: list[SampleScores]) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples)

    def __iter__(self) -> Iterator[SampleScores]:
        return iter(self.samples)

    def to_frame(self) -> pandas.DataFrame:
        """One row a sample and one column a method; a score that could not be computed is missing. Needs pandas."""
        import pandas

        given = ["id", "label", "group"]
        columns = [*given, "scored_tokens", "truncated"]
        scored = [label for sample in self.samples for label in sample["scores"]]
        failed = [error["label"] for sample in self.samples for error in sample["errors"] if "label" in error]
        rows = [{name: sample.get(name) for name in columns} | sample["scores"] for sample in self.samples]
        index = pandas.Index([sample["index"] for sample in self.samples], name="index")
        frame = pandas.DataFrame(rows, index=index, columns=[*columns, *dict.fromkeys(scored + failed)])
        return frame.drop(columns=[name for name in given if frame[name].isna().all()])
