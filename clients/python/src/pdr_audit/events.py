"""What happens to an audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: The states in which nothing changes any more.
FINAL = ("succeeded", "failed", "cancelled")


@dataclass(frozen=True)
class AuditEvent:
    """A change of an audit."""

    #: Counts up.
    id: int
    #: ``progress``, whose data are ``done`` and ``total``, or ``status``, whose data is ``status``.
    name: str
    data: dict[str, Any]
