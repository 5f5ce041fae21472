"""The folder in which ``pdr-audit audit --out`` keeps an audit."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import Any

from . import _files
from .audit import Audit, AuditScores
from .errors import InvalidFile
from .reports import Figure, ReportPage


class AuditRun(Audit):
    """An audit that the program ran without a service, with all that its folder has.

    It has no ``id``, so a client refuses it. Scores, page and figures are read when they are asked for.
    """

    def __init__(self, folder: Path, answer: dict[str, Any]) -> None:
        super().__init__(answer)
        self.source = self.folder = folder

    @cached_property
    def request(self) -> dict[str, Any]:
        """The program, its directory and arguments, and all that decides the report."""
        return _files.json_object(self.folder / "request.json")

    @cached_property
    def scores(self) -> AuditScores:
        """The scores of the samples."""
        path = self.folder / "scores.ndjson"
        samples, total = _files.audit_scores(path), self.progress["total"]
        if len(samples) != total:
            raise InvalidFile(path, f"it has {len(samples)} lines, and the report has {total} samples")
        return samples

    @cached_property
    def page(self) -> ReportPage:
        """The report as a page."""
        return ReportPage(_files.text(self.folder / "report.html"))

    @cached_property
    def figures(self) -> list[Figure]:
        """The figures of the report, in their order."""
        files = sorted((self.folder / "figures").glob("*.svg"), key=_place)
        return [Figure(file.name, _files.text(file)) for file in files]

    def _parts(self) -> list[str]:
        return [*super()._parts(), *(figure._repr_html_() for figure in self.figures)]


def _place(file: Path) -> tuple[int, str]:
    """The number that the name of a figure begins with, and the name."""
    number = re.match(r"\d+", file.name)
    return (int(number[0]) if number else 0, file.name)
