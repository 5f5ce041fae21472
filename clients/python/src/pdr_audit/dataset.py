"""Samples that the service keeps for audits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


class Dataset:
    """A dataset of the service; its id is the digest of its samples."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        #: The answer as the service gave it.
        self.answer = answer
        self.id = cast(str, answer["id"])
        self.samples = cast(int, answer["samples"])
        self.members = cast(int, answer["members"])
        self.non_members = cast(int, answer["non_members"])

    def __repr__(self) -> str:
        return f"<Dataset {self.id} {self.samples} samples>"
