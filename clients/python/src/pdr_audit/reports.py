"""Reports as pages, figures and signed envelopes."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, cast


@dataclass(frozen=True)
class ReportPage:
    """The page of a report, which needs nothing beside it."""

    html: str = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to a file."""
        Path(path).write_text(self.html, encoding="utf-8", newline="")

    def _repr_html_(self) -> str:
        # Without tokens, `sandbox` forbids scripts, forms, popups and the origin of the notebook.
        return (
            f'<iframe sandbox="" referrerpolicy="no-referrer" title="Report" srcdoc="{escape(self.html)}" '
            'style="width: 100%; height: 40rem; border: 1px solid #d0d7de"></iframe>'
        )


@dataclass(frozen=True)
class Figure:
    """A figure of a report."""

    #: The name of its file.
    name: str
    svg: str = field(repr=False)

    def _repr_html_(self) -> str:
        # A browser runs no scripts of an image.
        data = base64.b64encode(self.svg.encode()).decode()
        style = "display: block; max-width: 40rem"
        return f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(self.name)}" style="{style}">'


class Envelope:
    """A signed report: an in-toto statement in a DSSE envelope.

    Nothing here checks the signatures; ``pdr-audit verify`` does, of the file that :meth:`save` writes. That takes the
    public key, from somewhere other than the service.
    """

    def __init__(self, answer: Mapping[str, Any]) -> None:
        #: The answer as the service gave it.
        self.answer = answer
        self.payload_type = cast(str, answer["payloadType"])
        #: The bytes that are signed, with the payload type.
        self.payload = _decoded(cast(str, answer["payload"]))
        #: Each with ``sig`` and perhaps ``keyid``.
        self.signatures = cast("list[Mapping[str, str]]", answer["signatures"])

    @property
    def statement(self) -> dict[str, Any]:
        """The statement in the payload, unverified."""
        return cast("dict[str, Any]", json.loads(self.payload))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the envelope to a file, as JSON."""
        Path(path).write_text(json.dumps(self.answer), encoding="utf-8")

    def __repr__(self) -> str:
        return f"<Envelope {self.payload_type} {len(self.signatures)} signatures>"


def _decoded(payload: str) -> bytes:
    # DSSE allows either alphabet of base64.
    try:
        return base64.b64decode(payload.translate(str.maketrans("-_", "+/")), validate=True)
    except ValueError as error:
        raise ValueError(f"the payload of the envelope is not base64: {error}") from error
