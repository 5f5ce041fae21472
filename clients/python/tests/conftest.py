"""The tests talk to a real service and run the program: ``PDR_AUDIT_URL`` is the address of the one, and
``PDR_AUDIT_PROGRAM`` the path of the other. ``PDR_AUDIT_SAMPLES`` names the samples of the demo.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
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


@pytest.fixture(scope="session")
def program() -> Callable[..., str]:
    """The program with these arguments, which gives what it prints."""

    def run(*arguments: str | Path) -> str:
        command = [os.environ["PDR_AUDIT_PROGRAM"], *map(str, arguments)]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True).stdout

    return run


@pytest.fixture(scope="session")
def sample_file(samples: list[Sample], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("samples") / "samples.jsonl"
    path.write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    return path


@pytest.fixture(scope="session")
def run_folder(program: Callable[..., str], sample_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an audit of the samples."""
    folder = tmp_path_factory.mktemp("run") / "run"
    program("audit", sample_file, "--model", "demo", "--methods", "loss,min_k_plus_plus", "--out", folder)
    return folder
