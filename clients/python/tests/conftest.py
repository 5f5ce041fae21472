"""The tests talk to a real service: ``PDR_AUDIT_URL`` says where, ``PDR_AUDIT_SAMPLES`` names the samples of the demo."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pdr_audit import Client
from pdr_audit.types import Sample


@pytest.fixture(scope="session")
def url() -> str:
    return os.environ["PDR_AUDIT_URL"]


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url) as client:
        yield client


@pytest.fixture(scope="session")
def samples() -> list[Sample]:
    """The first 20 samples of each label."""
    rows: list[Sample] = [json.loads(line) for line in Path(os.environ["PDR_AUDIT_SAMPLES"]).open()]
    return [row for label in (1, 0) for row in [row for row in rows if row["label"] == label][:20]]
