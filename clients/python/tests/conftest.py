"""The tests talk to a real service and run the program: ``PDR_AUDIT_URL`` is the address of the one, and
``PDR_AUDIT_PROGRAM`` the path of the other. ``PDR_AUDIT_SAMPLES`` names the samples of the demo.
"""

import json
import os
import re
import subprocess
import time
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
def signing_key(program: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key to sign reports with; beside it, as ``key.pub.pem``, its public half."""
    path = tmp_path_factory.mktemp("key") / "key.pem"
    path.with_name("key.pub.pem").write_text(program("key", "new-signing", path))
    return path


@pytest.fixture(scope="session")
def signing_url(signing_key: Path) -> Iterator[str]:
    """The address of a second service, which signs with this key."""
    log = signing_key.with_name("log")
    settings = {"PDR_AUDIT__SIGNING__KEY_FILE": str(signing_key), "PDR_AUDIT__SERVER__DRAIN_DELAY": "0s"}
    environment = {**os.environ, **settings, "NO_COLOR": "1"}
    with log.open("w") as output:
        command = [os.environ["PDR_AUDIT_PROGRAM"], "serve", "--port", "0"]
        server = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + 30
        while (found := re.search(r"listening on (http://[0-9.:]+)", log.read_text())) is None:
            assert server.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.02)
        yield found[1]
    finally:
        server.terminate()
        server.wait(timeout=30)


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
