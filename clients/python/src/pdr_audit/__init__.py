"""Client of pdr-audit, which tells whether a text was in a language model's pre-training data."""

from .async_client import AsyncClient
from .audit import Audit, AuditScores
from .client import Client
from .comparison import Comparison
from .dataset import Dataset
from .errors import (
    AuditFailed,
    Conflict,
    Denied,
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
from .scores import Scores

__all__ = [
    "AsyncClient",
    "Audit",
    "AuditEvent",
    "AuditFailed",
    "AuditScores",
    "Calibration",
    "Client",
    "Comparison",
    "Conflict",
    "Denied",
    "Dataset",
    "Finetune",
    "InvalidRequest",
    "Job",
    "JobEvent",
    "JobFailed",
    "Memorization",
    "NotFound",
    "PdrAuditError",
    "ProblemError",
    "Scores",
    "Test",
    "TooLarge",
    "Unavailable",
    "Unreachable",
]
