"""Client of pdr-audit, a service that scores texts by membership-inference methods and audits models."""

from ._read import read
from .async_client import AsyncClient
from .audit import Audit, AuditScores
from .audit_run import AuditRun
from .canaries import Canaries
from .client import Client
from .comparison import Comparison
from .dataset import Dataset
from .errors import (
    AuditFailed,
    Conflict,
    Denied,
    InvalidFile,
    InvalidRequest,
    JobFailed,
    NotFound,
    PdrAuditError,
    ProblemError,
    TooLarge,
    Unavailable,
    Unreachable,
)
from .events import AuditEvent, JobEvent
from .job import Calibration, Finetune, Job, Memorization, Test
from .plan import Plan
from .reports import Envelope, Figure, ReportPage
from .scores import Scores

__all__ = [
    "AsyncClient",
    "Audit",
    "AuditEvent",
    "AuditFailed",
    "AuditRun",
    "AuditScores",
    "Calibration",
    "Canaries",
    "Client",
    "Comparison",
    "Conflict",
    "Denied",
    "Dataset",
    "Envelope",
    "Figure",
    "Finetune",
    "InvalidFile",
    "InvalidRequest",
    "Job",
    "JobEvent",
    "JobFailed",
    "Memorization",
    "NotFound",
    "PdrAuditError",
    "Plan",
    "ProblemError",
    "ReportPage",
    "Scores",
    "Test",
    "TooLarge",
    "Unavailable",
    "Unreachable",
    "read",
]
