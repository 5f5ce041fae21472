"""Jobs: work that the service queues, runs and keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar, cast

from .events import FINAL
from .types import Progress, Status

J = TypeVar("J", bound="Job")


class Job:
    """A job as it stood when the service was asked."""

    #: The route of this kind of job, and the key under which its lists have the jobs.
    route: ClassVar[str]
    listed: ClassVar[str]

    def __init__(self, answer: Mapping[str, Any]) -> None:
        #: The answer as the service gave it.
        self.answer = answer
        self.id = cast(str, answer["id"])
        self.status = cast("Status", answer["status"])
        self.progress = cast(Progress, answer["progress"])
        #: Why it failed, as a problem.
        self.error = cast("Mapping[str, Any] | None", answer.get("error"))
        #: What it found; None until it has succeeded, and in lists. A calibration's sizes are in ``answer["methods"]``.
        self.results = cast("Mapping[str, Any] | None", answer.get("results"))

    @property
    def is_final(self) -> bool:
        """Whether nothing will change any more."""
        return self.status in FINAL

    def __repr__(self) -> str:
        done, total = self.progress["done"], self.progress["total"]
        return f"<{type(self).__name__} {self.id} {self.status} {done}/{total}>"


class Calibration(Job):
    """The scores of known non-members, which give other texts p-values."""

    route = "/v1/calibrations"
    listed = "calibrations"


class Test(Job):
    """A comparison of texts with others that the model cannot have seen; it needs no threshold."""

    route = "/v1/tests"
    listed = "tests"
    #: Keeps pytest from collecting it.
    __test__ = False


class Memorization(Job):
    """How much of texts a model completes word by word."""

    route = "/v1/memorization"
    listed = "memorizations"


class Finetune(Job):
    """The tuning of an adapter of a model."""

    route = "/v1/finetunes"
    listed = "finetunes"
