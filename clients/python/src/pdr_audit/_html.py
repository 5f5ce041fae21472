"""Pieces of HTML for notebooks. All text is escaped, since files and services may hold anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

#: The mark of a number that is missing.
DASH = "–"


def number(value: object, digits: int = 3) -> str:
    """A number with so many decimals, and a whole one without."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return DASH if value is None else str(value)
    return str(value) if isinstance(value, int) else f"{value:.{digits}f}"


def p_value(value: object) -> str:
    """A p-value with four decimals; a smaller one as a power of ten."""
    return f"{value:.1e}" if isinstance(value, float) and 0 < value < 1e-4 else number(value, 4)


def interval(value: object) -> str:
    """An interval of two numbers."""
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        return DASH
    return f"{number(value[0])} to {number(value[1])}"


def level(confidence: object) -> str:
    """A level of confidence before the name of an interval; nothing where it is unknown."""
    return f"{confidence * 100:g} % " if isinstance(confidence, (int, float)) else ""


def path(value: Any, *names: str) -> Any:
    """The value at this place of nested objects; None where there is nothing."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def objects(value: Any, *names: str) -> list[dict[str, Any]]:
    """The objects in the list at this place of nested objects."""
    listed = path(value, *names)
    return [element for element in listed if isinstance(element, dict)] if isinstance(listed, list) else []


def paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def items(texts: Iterable[str]) -> str:
    """A list of texts; nothing where there are none."""
    listed = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<ul>{listed}</ul>" if listed else ""


def details(summary: str, texts: Iterable[str]) -> str:
    """A list that is folded up; nothing where it is empty."""
    listed = items(texts)
    return f"<details><summary>{escape(summary)}</summary>{listed}</details>" if listed else ""


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table without the columns that are empty in all rows; nothing where there are no rows."""
    cells = [list(row) for row in rows]
    used = [place for place in range(len(headers)) if any(row[place] != DASH for row in cells)]
    if not used:
        return ""
    head = "".join(f"<th>{escape(headers[place])}</th>" for place in used)
    body = "".join("<tr>" + "".join(f"<td>{escape(row[place])}</td>" for place in used) + "</tr>" for row in cells)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
