"""Events of jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: The states in which nothing changes any more.
FINAL = ("succeeded", "failed", "cancelled")


@dataclass(frozen=True)
class JobEvent:
    """A change of a job."""

    #: Counts up.
    id: int
    #: ``progress``, whose data are ``done`` and ``total``, or ``status``, whose data is ``status``.
    name: str
    data: dict[str, Any]


#: The name of an event from when only audits had events.
AuditEvent = JobEvent
