"""Client of pdr-audit, which tells whether a text was in a language model's pre-training data."""

from .async_client import AsyncClient
from .audit import Audit, AuditScores
from .client import Client
from .comparison import Comparison
from .dataset import Dataset
from .errors import (
    AuditFailed,
    Conflict,
    InvalidRequest,
    NotFound,
    PdrAuditError,
    ProblemError,
    TooLarge,
    Unavailable,
    Unreachable,
)
from .events import AuditEvent
from .scores import Scores

__all__ = [
    "AsyncClient",
    "Audit",
    "AuditEvent",
    "AuditFailed",
    "AuditScores",
    "Client",
    "Comparison",
    "Conflict",
    "Dataset",
    "InvalidRequest",
    "NotFound",
    "PdrAuditError",
    "ProblemError",
    "Scores",
    "TooLarge",
    "Unavailable",
    "Unreachable",
]
