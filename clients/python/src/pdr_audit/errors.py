"""Exceptions of this package; refusals of the service are made of its ``application/problem+json``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from .types import PointedFault

if TYPE_CHECKING:
    from .audit import Audit
    from .job import Job


class PdrAuditError(Exception):
    """Everything that this package raises on its own."""


class InvalidFile(PdrAuditError):
    """A file or folder is not what was to be read."""

    def __init__(self, path: Path, fault: str) -> None:
        super().__init__(f"{path}: {fault}")
        self.path = path
        self.fault = fault


class Unreachable(PdrAuditError):
    """The service did not answer."""


class JobFailed(PdrAuditError):
    """The job that was waited for failed or was cancelled."""

    def __init__(self, job: Job) -> None:
        why = (job.error or {}).get("detail")
        super().__init__(f"{type(job).__name__.lower()} {job.id} {job.status}" + (f": {why}" if why else ""))
        self.job = job


class AuditFailed(JobFailed):
    """The same where the job is an audit."""

    def __init__(self, audit: Audit) -> None:
        super().__init__(audit)
        self.audit = audit


class ProblemError(PdrAuditError):
    """A refusal of the service."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.problem = problem
        #: The fault in this case.
        self.detail = str(problem.get("detail") or problem.get("title") or f"HTTP status {status}")
        #: Each fault of an invalid request.
        self.errors = cast("list[PointedFault]", problem.get("errors") or [])
        #: The id under which the service's log has this request.
        self.request_id = problem.get("request_id")
        faults = "".join(f"\n  {_place(fault)}: {fault['detail']}" for fault in self.errors)
        super().__init__(f"{status}: {self.detail}" + (faults if len(self.errors) > 1 else ""))


def _place(fault: PointedFault) -> str:
    return fault.get("parameter") or fault["pointer"] or "body"


class InvalidRequest(ProblemError):
    """400 or 422: the request has faults; ``errors`` points at each."""


class Denied(ProblemError):
    """401 or 403: there is no key, or one that does not allow this."""


class NotFound(ProblemError):
    """404: there is no such model, job or dataset."""


class Conflict(ProblemError):
    """409: the state does not allow this."""


class TooLarge(ProblemError):
    """413: a limit is exceeded; the detail names it."""


class Unavailable(ProblemError):
    """429, 503 or 504: not now, and not within the retries of the client."""


_BY_STATUS: Mapping[int, type[ProblemError]] = {
    400: InvalidRequest,
    401: Denied,
    403: Denied,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    422: InvalidRequest,
    429: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


def from_problem(status: int, problem: Mapping[str, Any]) -> ProblemError:
    """The exception of a problem."""
    return _BY_STATUS.get(status, ProblemError)(status, problem)
