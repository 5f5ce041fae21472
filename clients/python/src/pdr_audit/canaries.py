"""The private part of canaries, as ``pdr-audit canary make`` writes it."""

from __future__ import annotations

from dataclasses import dataclass, field

from .types import Canary, ComparedTexts, Method


@dataclass(frozen=True)
class Canaries:
    """Canaries with their twins, which of the texts was drawn, and how the test is done.

    They are as secret as the file that they were read from, until the test.
    """

    canaries: list[Canary] = field(repr=False)
    #: The method that decides, which the commitment covers.
    method: Method
    nonce: str = field(repr=False)
    #: The SHA-256 that was deposited before publication.
    commitment: str | None = None

    @property
    def published(self) -> list[str]:
        """The texts that were drawn for publication."""
        return [canary["text"] for canary in self.canaries]

    @property
    def texts(self) -> ComparedTexts:
        """The canaries as a test takes them."""
        return {"kind": "rank", "canaries": self.canaries}

    def __len__(self) -> int:
        return len(self.canaries)
