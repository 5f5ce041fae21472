"""Requests as plain values, and the reading of answers, for both clients. Nothing here does I/O."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast
from urllib.parse import quote

import httpx

from ._rows import Samples, rows
from ._upload import Archive, AsyncSource, Documents, Upload
from .audit import Audit, AuditScores
from .canaries import Canaries
from .dataset import Dataset
from .errors import AuditFailed, JobFailed, ProblemError, from_problem
from .job import Calibration, Finetune, J, Job, Memorization, Test
from .plan import Plan
from .reports import Envelope, ReportPage
from .types import (
    ComparedTexts,
    ComparisonQuestion,
    Continuation,
    CutSettings,
    Evidence,
    Lora,
    Method,
    Metrics,
    Optimizer,
    Overflow,
    Passes,
    ReportFormat,
    SampleScores,
    Text,
    Work,
)

#: Texts to score: one, or several with or without ids.
Texts: TypeAlias = "str | Iterable[str | Text]"
#: Texts to look for in what a model gives back.
Works: TypeAlias = "str | Iterable[str | Work]"
#: Audits and datasets may be given by their ids, and a calibration to score with.
AuditOrId: TypeAlias = Audit | str
DatasetOrId: TypeAlias = Dataset | str
CalibrationOrId: TypeAlias = Calibration | str
PlanOrId: TypeAlias = Plan | str
#: A job of any kind; an id alone is that of an audit.
JobOrId: TypeAlias = Job | str
OnProgress: TypeAlias = Callable[[int, int], object]

DEFAULT_URL = "http://localhost:8080"
DEFAULT_TIMEOUT = 120.0
DEFAULT_RETRIES = 5
#: Seconds between two looks at a job: at first, and at most.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
IDEMPOTENCY_KEY = "idempotency-key"
PLANS = "/v1/plans"
#: The media types of a report by its format.
REPORTS: Mapping[ReportFormat, str] = {
    "html": "text/html",
    "json": "application/json",
    "dsse": "application/vnd.dsse.envelope+json",
}
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
        """The number of times it may be sent again where ``retries`` are allowed."""
        return retries if self.upload is None or self.upload.is_repeatable else 0

    @property
    def is_idempotent(self) -> bool:
        """True if the service does nothing twice where the request comes twice."""
        # Datasets and plans are the same however often they come.
        is_named_by_content = self.upload is not None or self.path == PLANS
        return self.method == "GET" or IDEMPOTENCY_KEY in self.headers or is_named_by_content


def score(
    texts: Texts,
    methods: Iterable[Method] | None,
    model: str | None,
    overflow: Overflow | None,
    tokens: bool,
    calibration: CalibrationOrId | None,
) -> Call:
    inputs = texts if isinstance(texts, str) else list(texts)
    details = ["tokens"] if tokens else None
    against = None if calibration is None else _id(calibration)
    plan = _plan(methods, model, overflow)
    return Call("POST", "/v1/score", _given(inputs=inputs, details=details, calibration=against, **plan))


def audit(
    samples: Samples | DatasetOrId,
    methods: Iterable[Method] | None,
    model: str | None,
    overflow: Overflow | None,
    metrics: Metrics | None,
    evidence: Evidence | None,
    cut: CutSettings | None,
    plan: PlanOrId | None,
    max_cost: float | None,
    name: str | None,
    timeout_seconds: int | None,
    idempotency_key: str | None,
) -> Call:
    body = _given(name=name, timeout_seconds=timeout_seconds, plan=plan.id if isinstance(plan, Plan) else plan)
    body |= _audit(samples, methods, model, overflow, metrics, evidence, cut, max_cost)
    return _submission(Audit, body, idempotency_key)


def plan(
    samples: Samples | DatasetOrId,
    methods: Iterable[Method] | None,
    model: str | None,
    overflow: Overflow | None,
    metrics: Metrics | None,
    evidence: Evidence | None,
    cut: CutSettings | None,
    max_cost: float | None,
) -> Call:
    return Call("POST", PLANS, _audit(samples, methods, model, overflow, metrics, evidence, cut, max_cost))


def _audit(
    samples: Samples | DatasetOrId,
    methods: Iterable[Method] | None,
    model: str | None,
    overflow: Overflow | None,
    metrics: Metrics | None,
    evidence: Evidence | None,
    cut: CutSettings | None,
    max_cost: float | None,
) -> dict[str, Any]:
    """The fields that decide the report of an audit, and whether it is made."""
    # A control of None is sent, since it means something else than none at all.
    return (
        _given(metrics=metrics, cut=_cut(cut), max_cost=max_cost)
        | _samples(samples)
        | _plan(methods, model, overflow)
        | dict(evidence or {})
    )


def calibrate(
    samples: Samples | DatasetOrId,
    methods: Iterable[Method] | None,
    model: str | None,
    overflow: Overflow | None,
    cut: CutSettings | None,
    name: str | None,
    timeout_seconds: int | None,
    idempotency_key: str | None,
) -> Call:
    body = _given(name=name, cut=_cut(cut), timeout_seconds=timeout_seconds)
    body |= _samples(samples) | _plan(methods, model, overflow)
    return _submission(Calibration, body, idempotency_key)


def test(
    texts: ComparedTexts,
    methods: Iterable[Method] | None,
    primary: str | None,
    model: str | None,
    overflow: Overflow | None,
    commitment: str | None,
    nonce: str | None,
    name: str | None,
    timeout_seconds: int | None,
    idempotency_key: str | None,
) -> Call:
    body = _given(primary=primary, commitment=commitment, nonce=nonce, name=name, timeout_seconds=timeout_seconds)
    body |= _plan(methods, model, overflow) | dict(texts)
    return _submission(Test, body, idempotency_key)


def open_canaries(
    canaries: Canaries,
    model: str | None,
    control: str | None,
    overflow: Overflow | None,
    commitment: str | None,
    name: str | None,
    timeout_seconds: int | None,
    idempotency_key: str | None,
) -> Call:
    committed = commitment or canaries.commitment
    if committed is None:
        raise ValueError("there is no commitment: there was no file of it beside the private part, so name it")
    texts = canaries.texts
    if control is not None:
        texts["control"] = control
    methods = [canaries.method]
    return test(
        texts, methods, None, model, overflow, committed, canaries.nonce, name, timeout_seconds, idempotency_key
    )


def measure_memorization(
    texts: Works | Dataset,
    control: Works | None,
    prefix: int | None,
    suffix: int | None,
    stride: int | None,
    passes: Passes | None,
    run_text: bool | None,
    continuation: Continuation | None,
    model: str | None,
    timeout_seconds: int | None,
    idempotency_key: str | None,
) -> Call:
    body = _given(prefix=prefix, suffix=suffix, stride=stride, passes=passes, run_text=run_text)
    body |= _given(continuation=continuation, model=model, timeout_seconds=timeout_seconds)
    body |= {"dataset": texts.id} if isinstance(texts, Dataset) else {"texts": _works(texts)}
    if control is not None:
        body["control"] = _works(control)
    return _submission(Memorization, body, idempotency_key)


def finetune(
    samples: Samples | DatasetOrId,
    name: str,
    model: str | None,
    lora: Lora | None,
    optimizer: Optimizer | None,
    seed: int | None,
    timeout_seconds: int | None,
    idempotency_key: str | None,
) -> Call:
    body = _given(model=model, lora=lora, optimizer=optimizer, seed=seed, timeout_seconds=timeout_seconds)
    body |= _samples(samples) | {"name": name}
    return _submission(Finetune, body, idempotency_key)


def _submission(kind: type[Job], body: Mapping[str, Any], idempotency_key: str | None) -> Call:
    return Call("POST", kind.route, body, headers=_given(**{IDEMPOTENCY_KEY: idempotency_key}))


def kind_of(job: JobOrId) -> type[Job]:
    return Audit if isinstance(job, str) else type(job)


def one(job: JobOrId, method: str = "GET", action: str = "", kind: type[Job] | None = None) -> Call:
    """A request about one job; ``kind`` is that of an id."""
    route = (kind or kind_of(job)).route
    return Call(method, f"{route}/{_quoted(job)}{action}")


def compare(a: AuditOrId, b: AuditOrId, question: ComparisonQuestion | None) -> Call:
    return replace(one(a, action=f"/compare/{_quoted(b)}"), query=_given(question=question))


def report(job: JobOrId, format: ReportFormat) -> Call:
    if format not in REPORTS:
        raise ValueError(f"the format is {format!r}, and may be one of {', '.join(REPORTS)}")
    return replace(one(job, action="/report"), headers={"accept": REPORTS[format]})


def read_report(response: httpx.Response, format: ReportFormat) -> ReportPage | dict[str, Any] | Envelope:
    """The report in the format that was asked for."""
    if format == "html" and response.is_success:
        return ReportPage(response.text)
    content = answer(response)
    return Envelope(content) if format == "dsse" else dict(content)


def page(path: str, query: Mapping[str, str | None], after: str | None) -> Call:
    return Call("GET", path, query=_given(**query, after=after))


def upload(
    source: AsyncSource,
    media_type: str | None,
    retain: bool,
    keep_columns: bool,
    text_column: str | None,
    label_column: str | None,
    id_column: str | None,
    words: int | None,
    cut: CutSettings | None,
    name: str | None,
    chat_template: str | None,
) -> Call:
    streamed = Upload(source)
    media_type = media_type or streamed.media_type()
    query = _given(
        keep_columns=None if keep_columns else "false",
        text_column=text_column,
        label_column=label_column,
        id_column=id_column,
        words=None if words is None else str(words),
        name=name or streamed.document_name(media_type),
        chat_template=chat_template,
    )
    return _upload(streamed, media_type, retain, cut, query)


def upload_documents(documents: Documents, retain: bool, cut: CutSettings | None) -> Call:
    archive = Upload(Archive.of(documents))
    return _upload(archive, archive.media_type(), retain, cut, {})


def _upload(streamed: Upload, media_type: str, retain: bool, cut: CutSettings | None, query: Mapping[str, str]) -> Call:
    settings = dict(_cut(cut) or {})
    if "words" in settings:
        settings["cut"] = settings.pop("words")
    query = {
        **query,
        **_given(retain=None if retain else "false"),
        **{name: str(value) for name, value in settings.items()},
    }
    return Call("POST", "/v1/datasets", query=query, headers={"content-type": media_type}, upload=streamed)


def _cut(cut: CutSettings | None) -> Mapping[str, Any] | None:
    return {"words": cut} if isinstance(cut, int) else cut


def one_dataset(dataset: DatasetOrId, method: str = "GET") -> Call:
    return Call(method, f"/v1/datasets/{_quoted(dataset)}")


def one_adapter(model: str, name: str, method: str) -> Call:
    return Call(method, f"/v1/models/{_quoted(model)}/adapters/{_quoted(name)}")


def _id(value: Job | Dataset | str) -> str:
    if isinstance(value, Job) and not value.id:
        raise ValueError(f"{value!r} was read from a file and has no id, so no service has it")
    return value if isinstance(value, str) else value.id


def _quoted(value: Job | Dataset | str) -> str:
    return quote(_id(value), safe="")


def _samples(samples: Samples | DatasetOrId) -> dict[str, Any]:
    return {"dataset": _id(samples)} if isinstance(samples, (Dataset, str)) else {"samples": rows(samples)}


def _works(texts: Works) -> list[Any]:
    # A text is iterable as well, and its letters are no texts.
    return [texts] if isinstance(texts, str) else list(texts)


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
    return AuditScores([cast(SampleScores, line) for line in lines(response)])


def lines(response: httpx.Response) -> list[dict[str, Any]]:
    """The values of an answer of lines of JSON."""
    if not response.is_success:
        raise problem(response)
    return [json.loads(line) for line in response.text.split("\n") if line]


def headers(key: str | None, given: Mapping[str, str] | None) -> dict[str, str]:
    """The headers of every request."""
    return {**({} if key is None else {"authorization": f"Bearer {key}"}), **(given or {})}


def retry_after(response: httpx.Response, tries_left: int) -> float | None:
    """The seconds to wait before the request is sent again; None where it is not."""
    if response.status_code not in (429, 503) or tries_left <= 0:
        return None
    named = response.headers.get("retry-after", "")
    return min(float(named) if named.isdigit() else USUAL_RETRY, LONGEST_RETRY)


def retry_unreached(call: Call, error: httpx.TransportError, tries_left: int) -> float | None:
    """The same where no answer came: only what changes nothing is sent again."""
    if not call.is_idempotent or tries_left <= 0 or isinstance(error, httpx.UnsupportedProtocol):
        return None
    return USUAL_RETRY


def pauses(interval: float | None) -> Iterator[float]:
    """The seconds between one look at a job and the next, without end."""
    pause = FIRST_PAUSE if interval is None else interval
    while True:
        yield pause
        pause = min(pause * 1.5, LONGEST_PAUSE) if interval is None else interval


def succeeded(job: J) -> J:
    """The job, which has ended.

    Raises JobFailed where it did not succeed, which of an audit is AuditFailed.
    """
    if job.status != "succeeded":
        raise AuditFailed(job) if isinstance(job, Audit) else JobFailed(job)
    return job
