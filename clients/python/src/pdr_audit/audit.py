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
        # Between the methods and what is said of the plan.
        parts[2:2] = [self._works(), self._list(), self._exclusions(), self._earlier_audits()] if parts else []
        return parts

    def _table(self) -> str:
        confidence = _html.path(self.results, "provenance", "request", "metrics", "bootstrap", "confidence")
        interval = f"{_html.level(confidence)}bootstrap interval"
        found = ["method", "scored", "AUROC", "s.e.", interval, "adjusted p"]
        beside = ["AUROC of the control", "difference", "adjusted p of the difference"]
        against = ["known clusters", "smallest possible p-value"]
        return _html.table(found + beside + against, [_cells(method) for method in self.methods])

    def _works(self) -> str:
        """The works tested, each among the known works of the calibration."""
        works = _html.objects(self.results, "works")
        if not works:
            return ""
        rows = [
            [
                str(work.get("document")),
                *(_html.p_value(work.get(name)) for name in ("p_value", "p_value_adjusted")),
                "yes" if work.get("listed") is True else "no",
            ]
            for work in works[:MOST_WORKS]
        ]
        table = _html.table(["work", "p-value", "adjusted p-value", "on the list"], rows)
        left_out = f"The first {MOST_WORKS} of {len(works)} works." if len(works) > MOST_WORKS else ""
        return _html.paragraph(WORKS) + table + (_html.paragraph(left_out) if left_out else "")

    def _list(self) -> str:
        """A line about the list of texts at a false discovery rate."""
        decisions = _html.path(self.results, "decisions")
        if not isinstance(decisions, dict):
            return ""
        rejected, tested, fdr, procedure, method = (
            decisions.get(name) for name in ("rejected", "tested", "fdr", "procedure", "method")
        )
        rate = f"at a false discovery rate of {fdr} ({procedure}), by {method}"
        return _html.paragraph(f"On the list {rate}: {rejected} of {tested} clusters. A list is no verdict.")

    def _exclusions(self) -> str:
        """The numbers of scores that are missing, by method and reason."""
        return _html.items(
            f"samples without a score by {excluded.get('label') or 'any method'}: {excluded.get('samples')} "
            f"({excluded.get('code')})"
            for excluded in _html.objects(self.results, "samples", "exclusions")
        )

    def _earlier_audits(self) -> str:
        earlier = _html.path(self.results, "plan", "earlier_audits")
        return _html.paragraph(f"earlier audits of the same samples: {earlier} ({HINT})") if earlier else ""


#: The words of the program about an audit without a plan.
UNPLANNED = "unplanned: methods, primary and control may have been chosen by their results"
#: A condition of the p-values of works.
WORKS = (
    "Each work is ranked among the known works of the calibration. Its p-value means something only where the known works "
    "are like those tested; the adjusted one is for the number of works tested."
)
#: The most works that are shown.
MOST_WORKS = 200
#: A caution about the number of earlier audits.
HINT = "a hint, no proof: deleted audits, and samples in another order or with other ids, do not count"


def _cells(method: Mapping[str, Any]) -> list[str]:
    control = method.get("control")
    return [
        method["label"],
        *(_html.number(method.get(name)) for name in ("scored", "auroc", "auroc_standard_error")),
        _html.interval(_html.path(method.get("bootstrap"), "auroc", "interval")),
        _html.p_value(method.get("p_value_adjusted")),
        *(_html.number(_html.path(control, name)) for name in ("auroc", "difference")),
        _html.p_value(_html.path(control, "p_value_adjusted")),
        _html.number(_html.path(method.get("calibration"), "clusters")),
        _html.p_value(_html.path(method.get("calibration"), "resolution")),
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
