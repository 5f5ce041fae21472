"""Files of JSON and text, whose faults are named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from .audit import AuditScores
from .errors import InvalidFile
from .types import SampleScores


def text(path: Path) -> str:
    """The text of a file."""
    content = path.read_bytes()
    if not content:
        raise InvalidFile(path, "the file is empty")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InvalidFile(path, f"byte {error.start} is not UTF-8") from error


def json_object(path: Path) -> dict[str, Any]:
    """The object in a file of JSON."""
    content = text(path)
    try:
        value = json.loads(content)
    except json.JSONDecodeError as error:
        raise InvalidFile(
            path, f"line {error.lineno}, column {error.colno}: not JSON, or cut off: {error.msg}"
        ) from error
    except RecursionError as error:
        raise InvalidFile(path, "the JSON is nested too deeply") from error
    if not isinstance(value, dict):
        raise InvalidFile(path, "a report is a JSON object")
    return value


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects in a file of lines of JSON."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                value = json.loads(line) if line.strip() else None
            except (ValueError, RecursionError) as error:
                raise InvalidFile(path, f"line {number}: not JSON, or cut off: {error}") from error
            if value is None:
                continue
            if not isinstance(value, dict):
                raise InvalidFile(path, f"line {number}: not a JSON object")
            yield value


def audit_scores(path: Path) -> AuditScores:
    """The scores of an audit's samples."""
    return AuditScores([cast(SampleScores, row) for row in scored(path)])


def scored(path: Path) -> Iterator[dict[str, Any]]:
    """Lines that have scores."""
    for number, row in enumerate(json_lines(path), start=1):
        if not (isinstance(row.get("scores"), dict) and isinstance(row.get("errors"), list) and "index" in row):
            raise InvalidFile(path, f"row {number} has no scores: a line has `index`, `scores` and `errors`")
        yield row
