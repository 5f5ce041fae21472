"""An audit as it stands, and the scores of its samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from . import _html
from .job import Job
from .types import MethodReport, SampleScores

if TYPE_CHECKING:
    import pandas


class Audit(Job):
    """An audit as it stood when the service was asked."""

    route = "/v1/audits"
    listed = "audits"

    @property
    def methods(self) -> list[MethodReport]:
        """The results of each method; empty until the audit has succeeded."""
        return cast("list[MethodReport]", self.results["methods"]) if self.results else []

    @property
    def warnings(self) -> list[str]:
        """The warnings of the report, in words."""
        return [warning["detail"] for warning in self.results["warnings"]] if self.results else []

    def __getitem__(self, label: str) -> MethodReport:
        """The results of the method of this label."""
        for method in self.methods:
            if method["label"] == label:
                return method
        raise KeyError(label)

    def to_frame(self) -> pandas.DataFrame:
        """One row a method, by its label. Needs pandas."""
        import pandas

        rows = [_row(method) for method in self.methods]
        return pandas.DataFrame(rows, index=pandas.Index([method["label"] for method in self.methods], name="method"))

    def _parts(self) -> list[str]:
        parts = super()._parts()
        if _html.path(self.results, "plan", "planned") is False:
            parts.insert(-2, _html.paragraph(UNPLANNED))
        return parts

    def _table(self) -> str:
        confidence = _html.path(self.results, "provenance", "request", "metrics", "bootstrap", "confidence")
        interval = f"{_html.level(confidence)}bootstrap interval"
        found = ["method", "scored", "AUROC", "s.e.", interval, "adjusted p"]
        beside = ["AUROC of the control", "difference", "adjusted p of the difference"]
        return _html.table(found + beside, [_cells(method) for method in self.methods])


#: The words of the program about an audit without a plan.
UNPLANNED = "unplanned: methods, primary and control may have been chosen by their results"


def _cells(method: Mapping[str, Any]) -> list[str]:
    control = method.get("control")
    return [
        method["label"],
        *(_html.number(method.get(name)) for name in ("scored", "auroc", "auroc_standard_error")),
        _html.interval(_html.path(method.get("bootstrap"), "auroc", "interval")),
        _html.p_value(method.get("p_value_adjusted")),
        *(_html.number(_html.path(control, name)) for name in ("auroc", "difference")),
        _html.p_value(_html.path(control, "p_value_adjusted")),
    ]


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
        """One row a sample and one column a method; a score that could not be computed is missing. Needs pandas.

        Where the audit has them, columns ``p_value_`` and the label have the p-values of a method, and columns
        ``control_score_`` and the label its scores under the control model. ``p_value_adjusted`` and ``flagged``
        (true for a sample on the list) are by the method that decides, ``posterior`` by the primary one.
        """
        import pandas

        given, found = ["id", "label", "group", "document"], ["p_value_adjusted", "flagged", "posterior"]
        counted = ["scored_tokens", "truncated"]
        failed = [error["label"] for sample in self.samples for error in sample["errors"] if "label" in error]
        scores = [dict(sample["scores"]) for sample in self.samples]
        p_values = [_prefixed("p_value_", sample.get("p_values")) for sample in self.samples]
        controls = [_prefixed("control_score_", sample.get("control_scores")) for sample in self.samples]
        rows = [
            {name: sample.get(name) for name in given + counted + found} | score | p_value | control
            for sample, score, p_value, control in zip(self.samples, scores, p_values, controls, strict=True)
        ]
        columns = [*given, *counted, *_names(scores, failed), *_names(p_values), *found, *_names(controls)]
        index = pandas.Index([sample["index"] for sample in self.samples], name="index")
        frame = pandas.DataFrame(rows, index=index, columns=columns)
        return frame.drop(columns=[name for name in given + found if frame[name].isna().all()])


def _prefixed(prefix: str, values: Mapping[str, float] | None) -> dict[str, float]:
    return {f"{prefix}{label}": value for label, value in (values or {}).items()}


def _names(rows: Iterable[Mapping[str, float]], more: Iterable[str] = ()) -> list[str]:
    """The names in these rows and ``more``, each once."""
    return list(dict.fromkeys([*(name for row in rows for name in row), *more]))
