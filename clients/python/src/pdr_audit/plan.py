"""Plans of audits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from .types import ServedForecast


class Plan:
    """All that decides the report of an audit, fixed before anything is scored."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        #: The answer as the service gave it.
        self.answer = answer
        #: ``sha256:`` and the SHA-256 of ``content``.
        self.id = cast(str, answer["id"])
        #: The time at which it was made first, in RFC 3339.
        self.created = cast(str, answer["created"])
        #: The JSON text that the id is the digest of.
        self.content = cast(str, answer["content"])
        #: The requests to models that are served elsewhere; None if all models run in the service.
        self.served = cast("ServedForecast | None", answer.get("served"))

    @property
    def fields(self) -> dict[str, Any]:
        """The content as an object."""
        return cast("dict[str, Any]", json.loads(self.content))

    def __repr__(self) -> str:
        return f"<Plan {self.id} {self.created}>"
