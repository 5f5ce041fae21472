"""What both clients share: requests as plain values, and how answers are read. Nothing here does I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import quote

import httpx

from .audit import Audit, AuditScores
from .errors import AuditFailed, ProblemError, from_problem
from .types import Method, Metrics, Overflow, Sample, SampleScores, Status, Text

if TYPE_CHECKING:
    import pandas

#: Texts to score: one, or several with or without ids.
Texts: TypeAlias = "str | Iterable[str | Text]"
#: Samples of an audit; a frame has the columns ``text`` and perhaps ``label``, ``id`` and ``group``.
Samples: TypeAlias = "Iterable[Sample] | pandas.DataFrame"

DEFAULT_URL = "http://localhost:8080"
DEFAULT_TIMEOUT = 120.0
DEFAULT_RETRIES = 5
#: Seconds between two looks at an audit: at first, and at most.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
#: Seconds before a retry where the service names none, and the most of what it may name.
USUAL_RETRY, LONGEST_RETRY = 5.0, 60.0


@dataclass(frozen=True)
class Call:
    """A request to the service."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    query: Mapping[str, str] = field(default_factory=dict)

    def build(self, http: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        return http.build_request(self.method, self.path, json=self.body, params=self.query or None)


def score(
    texts: Texts, methods: Iterable[Method] | None, model: str | None, overflow: Overflow | None, tokens: bool
) -> Call:
    inputs = texts if isinstance(texts, str) else list(texts)
    details = ["tokens"] if tokens else None
    return Call("POST", "/v1/score", _given(inputs=inputs, details=details, **_plan(methods, model, overflow)))


def submit(
    samples: Samples,
    methods: Iterable[Method] | None,
    model: str | None,
    overflow: Overflow | None,
    metrics: Metrics | None,
    name: str | None,
) -> Call:
    plan = _plan(methods, model, overflow)
    return Call("POST", "/v1/audits", _given(name=name, samples=_rows(samples), metrics=metrics, **plan))


def one(audit: Audit | str, method: str = "GET", action: str = "") -> Call:
    id = audit.id if isinstance(audit, Audit) else audit
    return Call(method, f"/v1/audits/{quote(id, safe='')}{action}")


def page(status: Status | None, model: str | None, after: str | None) -> Call:
    return Call("GET", "/v1/audits", query=_given(status=status, model=model, after=after))


def _plan(methods: Iterable[Method] | None, model: str | None, overflow: Overflow | None) -> dict[str, Any]:
    # A name is iterable as well, and its letters are no methods.
    listed = [methods] if isinstance(methods, (str, Mapping)) else methods
    return _given(methods=None if listed is None else list(listed), model=model, overflow=overflow)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _rows(samples: Samples) -> list[Mapping[str, Any]]:
    if not hasattr(samples, "to_dict"):
        return [cast("Mapping[str, Any]", sample) for sample in samples]
    frame = cast("pandas.DataFrame", samples)
    rows = cast("list[dict[str, Any]]", frame.astype(object).to_dict("records"))
    present = cast("list[dict[str, bool]]", frame.notna().to_dict("records"))
    return [
        {name: _plain(value) for name, value in row.items() if there[name]}
        for row, there in zip(rows, present, strict=True)
    ]


def _plain(value: Any) -> Any:
    """A cell of a frame as JSON has it."""
    # Arrays of numpy, which are what a file of Parquet has lists as, and its numbers.
    value = value.tolist() if hasattr(value, "tolist") else value
    # Integers with gaps among them are floats in a frame, and no field of a sample is a fraction.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def answer(response: httpx.Response) -> Any:
    """The JSON of a success.

    Raises the problem of anything else.
    """
    if not response.is_success:
        raise problem(response)
    return response.json() if response.content else None


def problem(response: httpx.Response) -> ProblemError:
    try:
        body = response.json()
    except ValueError:
        body = None
    # A proxy before the service may answer with anything.
    return from_problem(response.status_code, body if isinstance(body, dict) else {"detail": response.text[:500]})


def scores(response: httpx.Response) -> AuditScores:
    if not response.is_success:
        raise problem(response)
    return AuditScores([cast(SampleScores, json.loads(line)) for line in response.text.split("\n") if line])


def retry_after(response: httpx.Response, tries_left: int) -> float | None:
    """The seconds to wait before the request is sent again; None where it is not."""
    if response.status_code != 503 or tries_left <= 0:
        return None
    named = response.headers.get("retry-after", "")
    return min(float(named) if named.isdigit() else USUAL_RETRY, LONGEST_RETRY)


def retry_unreached(call: Call, error: httpx.TransportError, tries_left: int) -> float | None:
    """The same where no answer came: only what changes nothing is sent again."""
    if call.method != "GET" or tries_left <= 0 or isinstance(error, httpx.UnsupportedProtocol):
        return None
    return USUAL_RETRY


def pauses(interval: float | None) -> Iterator[float]:
    """The seconds between one look at an audit and the next, without end."""
    pause = FIRST_PAUSE if interval is None else interval
    while True:
        yield pause
        pause = min(pause * 1.5, LONGEST_PAUSE) if interval is None else interval


def succeeded(audit: Audit) -> Audit:
    """The audit, which has ended.

    Raises AuditFailed where it did not succeed.
    """
    if audit.status != "succeeded":
        raise AuditFailed(audit)
    return audit
