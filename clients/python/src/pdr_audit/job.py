"""Jobs: work that the service queues, runs and keeps."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

from . import _html
from .events import FINAL
from .types import Progress, Status

J = TypeVar("J", bound="Job")


class Job:
    """A job as it stood when the service was asked."""

    #: The route of this kind of job, and the key under which its lists have the jobs.
    route: ClassVar[str]
    listed: ClassVar[str]

    def __init__(self, answer: Mapping[str, Any]) -> None:
        #: The answer as the service gave it.
        self.answer = answer
        self.id = cast(str, answer["id"])
        self.status = cast("Status", answer["status"])
        self.progress = cast(Progress, answer["progress"])
        #: The problem that made it fail; None where it did not.
        self.error = cast("Mapping[str, Any] | None", answer.get("error"))
        #: The report; None until it has succeeded, and in lists. A calibration's sizes are in ``answer["methods"]``.
        self.results = cast("Mapping[str, Any] | None", answer.get("results"))
        #: The file or folder that it was read from; None for what a service answered.
        self.source: Path | None = None

    @property
    def sentence(self) -> str | None:
        """The sentence of the verdict, which says no more than the numbers allow; None where there is no verdict."""
        return cast("str | None", _html.path(self.results, "verdict", "sentence"))

    @property
    def is_final(self) -> bool:
        """True once the status is final."""
        return self.status in FINAL

    def __repr__(self) -> str:
        done, total = self.progress["done"], self.progress["total"]
        return f"<{type(self).__name__} {self.id or self.source} {self.status} {done}/{total}>"

    def _repr_html_(self) -> str:
        return f"<div>{''.join(self._parts()) or self._state()}</div>"

    def _parts(self) -> list[str]:
        """Pieces of HTML that show what the job found; none until it has succeeded, and in lists."""
        if self.status != "succeeded":
            return []
        return [
            _html.paragraph(self.sentence) if self.sentence else "",
            self._table(),
            _html.items(warning["detail"] for warning in (self.results or {}).get("warnings", [])),
            _html.details("Assumptions", _html.path(self.results, "verdict", "assumptions") or []),
        ]

    def _state(self) -> str:
        """A line of HTML that says how the job stands."""
        done, total = self.progress["done"], self.progress["total"]
        why = _html.path(self.error, "detail")
        state = f"{type(self).__name__} {self.id}: {self.status}, {done} of {total}"
        return _html.paragraph(f"{state}: {why}" if why else state)

    def _table(self) -> str:
        """The figures as a table of HTML."""
        return ""


class Calibration(Job):
    """The scores of known non-members, which give other texts p-values."""

    route = "/v1/calibrations"
    listed = "calibrations"

    def _table(self) -> str:
        rows = [
            [
                method["label"],
                *(_html.number(method.get(name)) for name in ("size", "clusters")),
                _html.p_value(method.get("resolution")),
            ]
            for method in self.answer["methods"]
            if method.get("size") is not None
        ]
        return _html.table(["method", "known non-members", "clusters", "smallest possible p-value"], rows)


class Test(Job):
    """A comparison of texts with others that the model cannot have seen; it needs no threshold."""

    route = "/v1/tests"
    listed = "tests"
    #: Keeps pytest from collecting it.
    __test__ = False

    def _table(self) -> str:
        rows = [
            [
                method["label"],
                _html.number(method.get("tested")),
                *(_html.p_value(method.get(name)) for name in ("p_value", "p_value_adjusted")),
                _html.number(method.get("error")),
            ]
            for method in (self.results or {}).get("methods", [])
        ]
        return _html.table(["method", "tested", "p-value", "adjusted p-value", "error"], rows)


class Memorization(Job):
    """The share of texts that a model completes word by word."""

    route = "/v1/memorization"
    listed = "memorizations"

    @property
    def sentence(self) -> str | None:
        """The reading that the report gives of its numbers, which is no verdict."""
        return cast("str | None", _html.path(self.results, "summary", "reading"))

    def _table(self) -> str:
        names = ["texts", "windows", "greedy_windows", "coverage", "longest_run"]
        summaries = [(name, _html.path(self.results, "summary", name)) for name in ("texts", "control")]
        rows = [[kind, *(_html.number(summary.get(name)) for name in names)] for kind, summary in summaries if summary]
        headers = ["", "texts", "windows", "completed by greedy decoding", "coverage", "longest run in tokens"]
        return _html.table(headers, rows)


class Finetune(Job):
    """The tuning of an adapter of a model."""

    route = "/v1/finetunes"
    listed = "finetunes"

    def _table(self) -> str:
        if self.results is None:
            return ""
        steps = self.results.get("steps", [])
        losses = (
            [_html.number(_html.path(step, "loss")) for step in (steps[0], steps[-1])] if steps else [_html.DASH] * 2
        )
        adapter = _html.number(self.results.get("adapter"))
        return _html.table(["adapter", "steps", "first loss", "last loss"], [[adapter, str(len(steps)), *losses]])
