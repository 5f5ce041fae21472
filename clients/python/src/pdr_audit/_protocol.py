"""What both clients share: requests as plain values, and how answers are read. Nothing here does I/O."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast
from urllib.parse import quote

import httpx

from ._rows import Samples, rows
from ._upload import AsyncSource, Upload
from .audit import Audit, AuditScores
from .dataset import Dataset
from .errors import AuditFailed, ProblemError, from_problem
from .types import Evidence, Method, Metrics, Overflow, SampleScores, Status, Text

#: Texts to score: one, or several with or without ids.
Texts: TypeAlias = "str | Iterable[str | Text]"
#: Audits and datasets may be given by their ids.
AuditOrId: TypeAlias = Audit | str
DatasetOrId: TypeAlias = Dataset | str

DEFAULT_URL = "http://localhost:8080"
DEFAULT_TIMEOUT = 120.0
DEFAULT_RETRIES = 5
#: Seconds between two looks at an audit: at first, and at most.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
IDEMPOTENCY_KEY = "idempotency-key"
#: Seconds before a retry where the service names none, and the most of what it may name.
USUAL_RETRY, LONGEST_RETRY = 5.0, 60.0


@dataclass(frozen=True)
class Call:
    """A request to the service."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    #: A body that is streamed.
    upload: Upload | None = None

    def build(
        self, http: httpx.Client | httpx.AsyncClient, content: Iterable[bytes] | AsyncIterable[bytes] | None = None
    ) -> httpx.Request:
        """The request; ``content`` are the chunks of its upload."""
        query, headers = self.query or None, self.headers
        return http.build_request(
            self.method, self.path, json=self.body, content=content, params=query, headers=headers
        )

    def tries_left(self, retries: int) -> int:
        """How often it may be sent again where ``retries`` are allowed."""
        return retries if self.upload is None or self.upload.is_repeatable else 0

    @property
    def is_idempotent(self) -> bool:
        """Whether the service does nothing twice where the request comes twice."""
        # A dataset is the same dataset however often it is uploaded.
        return self.method == "GET" or IDEMPOTENCY_KEY in self.headers or self.upload is not None


def score(
    texts: Texts, methods: Iterable[Method] | None, model: str | None, overflow: Overflow | None, tokens: bool
) -> Call:
    inputs = texts if isinstance(texts, str) else list(texts)
    details = ["tokens"] if tokens else None
    return Call("POST", "/v1/score", _given(inputs=inputs, details=details, **_plan(methods, model, overflow)))


def submit(
    samples: Samples | DatasetOrId,
    methods: Iterable[Method] | None,
    model: str | None,
    overflow: Overflow | None,
    metrics: Metrics | None,
    evidence: Evidence | None,
    name: str | None,
    timeout_seconds: int | None,
    idempotency_key: str | None,
) -> Call:
    texts = {"dataset": _id(samples)} if isinstance(samples, (Dataset, str)) else {"samples": rows(samples)}
    plan = _plan(methods, model, overflow)
    body = _given(name=name, metrics=metrics, timeout_seconds=timeout_seconds, **texts, **plan)
    # A control of None is sent, since it means something else than none at all.
    body.update(evidence or {})
    return Call("POST", "/v1/audits", body, headers=_given(**{IDEMPOTENCY_KEY: idempotency_key}))


def one(audit: AuditOrId, method: str = "GET", action: str = "") -> Call:
    return Call(method, f"/v1/audits/{_quoted(audit)}{action}")


def compare(a: AuditOrId, b: AuditOrId) -> Call:
    return one(a, action=f"/compare/{_quoted(b)}")


def page(status: Status | None, model: str | None, after: str | None) -> Call:
    return Call("GET", "/v1/audits", query=_given(status=status, model=model, after=after))


def upload(
    source: AsyncSource,
    media_type: str | None,
    retain: bool,
    keep_columns: bool,
    text_column: str | None,
    label_column: str | None,
    id_column: str | None,
    words: int | None,
) -> Call:
    streamed = Upload(source)
    query = _given(
        retain=None if retain else "false",
        keep_columns=None if keep_columns else "false",
        text_column=text_column,
        label_column=label_column,
        id_column=id_column,
        words=None if words is None else str(words),
    )
    headers = {"content-type": media_type or streamed.media_type()}
    return Call("POST", "/v1/datasets", query=query, headers=headers, upload=streamed)


def one_dataset(dataset: DatasetOrId, method: str = "GET") -> Call:
    return Call(method, f"/v1/datasets/{_quoted(dataset)}")


def page_of_datasets(after: str | None) -> Call:
    return Call("GET", "/v1/datasets", query=_given(after=after))


def _id(value: Audit | Dataset | str) -> str:
    return value if isinstance(value, str) else value.id


def _quoted(value: Audit | Dataset | str) -> str:
    return quote(_id(value), safe="")


def _plan(methods: Iterable[Method] | None, model: str | None, overflow: Overflow | None) -> dict[str, Any]:
    # A name is iterable as well, and its letters are no methods.
    listed = [methods] if isinstance(methods, (str, Mapping)) else methods
    return _given(methods=None if listed is None else list(listed), model=model, overflow=overflow)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


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
    if not call.is_idempotent or tries_left <= 0 or isinstance(error, httpx.UnsupportedProtocol):
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
