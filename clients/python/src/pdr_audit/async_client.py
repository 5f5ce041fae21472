"""The client of a service, for asyncio in ``async_client.py`` and without it in ``client.py``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from time import monotonic
from types import TracebackType
from typing import Any, Literal, overload

import httpx

from . import _protocol as protocol
from ._event_stream import EventStream
from ._protocol import AuditOrId, CalibrationOrId, Call, DatasetOrId, JobOrId, OnProgress, PlanOrId, Texts, Works
from ._rows import Samples
from ._upload import AsyncSource, Documents
from .audit import Audit, AuditScores
from .canaries import Canaries
from .comparison import Comparison
from .dataset import Dataset
from .errors import Unreachable
from .events import JobEvent
from .job import Calibration, Finetune, J, Job, Memorization, Test
from .plan import Plan
from .reports import Envelope, ReportPage
from .scores import Scores
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
    Status,
)


class AsyncClient:
    """A client of one service. ``Client`` waits for its answers and is safe to use from several threads;
    ``AsyncClient`` has the same methods for asyncio.

    A request that the service cannot take now (429 or 503) is sent again after the time that it names, and one that
    does nothing twice (it reads, uploads, plans, or has an idempotency key) 5 s after its connection failed, up to
    ``retries`` times. ``key`` is needed where the service has keys; ``headers`` go with every request; ``transport`` is one of
    httpx.
    """

    def __init__(
        self,
        base_url: str = protocol.DEFAULT_URL,
        *,
        timeout: float = protocol.DEFAULT_TIMEOUT,
        retries: int = protocol.DEFAULT_RETRIES,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._http = httpx.AsyncClient(
            base_url=base_url, timeout=timeout, headers=protocol.headers(key, headers), transport=transport
        )
        self._retries = retries

    async def score(
        self,
        texts: Texts,
        *,
        methods: Iterable[Method] | None = None,
        model: str | None = None,
        overflow: Overflow | None = None,
        tokens: bool = False,
        calibration: CalibrationOrId | None = None,
    ) -> Scores:
        """Scores texts; ``tokens`` asks for every token with what it adds to the scores.

        With a ``calibration`` for the same model and methods, each score gets a p-value against its known non-members.
        """
        return Scores(await self._ask(protocol.score(texts, methods, model, overflow, tokens, calibration)))

    async def audit(
        self,
        samples: Samples | DatasetOrId,
        *,
        methods: Iterable[Method] | None = None,
        model: str | None = None,
        overflow: Overflow | None = None,
        metrics: Metrics | None = None,
        evidence: Evidence | None = None,
        cut: CutSettings | None = None,
        plan: PlanOrId | None = None,
        max_cost: float | None = None,
        name: str | None = None,
        timeout_seconds: int | None = None,
        idempotency_key: str | None = None,
    ) -> Audit:
        """Submits an audit of samples, or of a dataset; see :meth:`wait` for its end.

        ``evidence`` says what its verdict rests on, and ``cut`` cuts the texts into passages. With a ``plan`` an audit
        that differs from it is refused, and the report cites it. With ``max_cost`` one is refused that would cost more by
        the forecast, in the currency in which the service states the prices of models that are served elsewhere.

        It fails where it has not ended ``timeout_seconds`` after its submission. The same ``idempotency_key`` with the
        same request gives the same audit, however often it is submitted.
        """
        call = protocol.audit(
            samples,
            methods,
            model,
            overflow,
            metrics,
            evidence,
            cut,
            plan,
            max_cost,
            name,
            timeout_seconds,
            idempotency_key,
        )
        return Audit(await self._ask(call))

    async def plan(
        self,
        samples: Samples | DatasetOrId,
        *,
        methods: Iterable[Method] | None = None,
        model: str | None = None,
        overflow: Overflow | None = None,
        metrics: Metrics | None = None,
        evidence: Evidence | None = None,
        cut: CutSettings | None = None,
        max_cost: float | None = None,
    ) -> Plan:
        """Plans an audit: fixes all that decides its report before anything is scored.

        Pass the plan to :meth:`audit`, with the same parameters. A plan that is known keeps its time.
        """
        call = protocol.plan(samples, methods, model, overflow, metrics, evidence, cut, max_cost)
        return Plan(await self._ask(call))

    async def calibrate(
        self,
        samples: Samples | DatasetOrId,
        *,
        methods: Iterable[Method] | None = None,
        model: str | None = None,
        overflow: Overflow | None = None,
        cut: CutSettings | None = None,
        name: str | None = None,
        timeout_seconds: int | None = None,
        idempotency_key: str | None = None,
    ) -> Calibration:
        """Submits a calibration, which scores known non-members so that other texts get p-values against them.

        Pass the calibration to :meth:`score`, or its id to an audit as ``evidence={"calibration": id}``. It takes at
        least 19 texts, none of them labelled a member. See :meth:`audit` for the other parameters.
        """
        call = protocol.calibrate(samples, methods, model, overflow, cut, name, timeout_seconds, idempotency_key)
        return Calibration(await self._ask(call))

    async def test(
        self,
        texts: ComparedTexts,
        *,
        methods: Iterable[Method] | None = None,
        primary: str | None = None,
        model: str | None = None,
        overflow: Overflow | None = None,
        commitment: str | None = None,
        nonce: str | None = None,
        name: str | None = None,
        timeout_seconds: int | None = None,
        idempotency_key: str | None = None,
    ) -> Test:
        """Submits a test that needs no threshold, since it compares texts with others that the model cannot have seen.

        The verdict is about the method ``primary``. ``commitment`` is the SHA-256 of the private texts and ``nonce``,
        published before the model was made. See :meth:`audit` for the other parameters.
        """
        call = protocol.test(
            texts, methods, primary, model, overflow, commitment, nonce, name, timeout_seconds, idempotency_key
        )
        return Test(await self._ask(call))

    async def open_canaries(
        self,
        canaries: Canaries,
        *,
        model: str | None = None,
        control: str | None = None,
        overflow: Overflow | None = None,
        commitment: str | None = None,
        name: str | None = None,
        timeout_seconds: int | None = None,
        idempotency_key: str | None = None,
    ) -> Test:
        """Submits the test of a model on canaries that ``pdr-audit canary make`` drew; :func:`read` reads them.

        This sends the twins to the service. The method is the one that was committed to. ``commitment`` is needed where
        the canaries come without it; where it does not match, the test finds nothing. ``control`` is the id of a model
        that has not seen them. See :meth:`audit` for the other parameters.
        """
        call = protocol.open_canaries(
            canaries, model, control, overflow, commitment, name, timeout_seconds, idempotency_key
        )
        return Test(await self._ask(call))

    async def measure_memorization(
        self,
        texts: Works | Dataset,
        *,
        control: Works | None = None,
        prefix: int | None = None,
        suffix: int | None = None,
        stride: int | None = None,
        passes: Passes | None = None,
        run_text: bool | None = None,
        continuation: Continuation | None = None,
        model: str | None = None,
        timeout_seconds: int | None = None,
        idempotency_key: str | None = None,
    ) -> Memorization:
        """Submits a job that measures how much of the texts, or of a dataset, the model completes word by word.

        ``control`` holds texts of the same kind that the model cannot have seen. The texts are cut into windows of
        ``prefix`` and ``suffix`` tokens, one every ``stride`` tokens; ``passes`` says if windows share forward passes.
        ``run_text`` asks for the text of each longest run, ``continuation`` for each text continued greedily. See
        :meth:`audit` for the other parameters.
        """
        call = protocol.measure_memorization(
            texts,
            control,
            prefix,
            suffix,
            stride,
            passes,
            run_text,
            continuation,
            model,
            timeout_seconds,
            idempotency_key,
        )
        return Memorization(await self._ask(call))

    async def finetune(
        self,
        samples: Samples | DatasetOrId,
        *,
        name: str,
        model: str | None = None,
        lora: Lora | None = None,
        optimizer: Optimizer | None = None,
        seed: int | None = None,
        timeout_seconds: int | None = None,
        idempotency_key: str | None = None,
    ) -> Finetune:
        """Submits a fine-tune, which tunes the adapter ``name`` of a model on texts that the model has not seen.

        Once it has succeeded, ``{"name": "fsd", "adapter": name}`` can be used as a method. It takes at least 8 texts,
        none of them labelled a member. See :meth:`audit` for the other parameters.
        """
        call = protocol.finetune(samples, name, model, lora, optimizer, seed, timeout_seconds, idempotency_key)
        return Finetune(await self._ask(call))

    @overload
    async def wait(
        self,
        job: str,
        *,
        progress: OnProgress | None = None,
        timeout: float | None = None,
        interval: float | None = None,
    ) -> Audit: ...

    @overload
    async def wait(
        self,
        job: J,
        *,
        progress: OnProgress | None = None,
        timeout: float | None = None,
        interval: float | None = None,
    ) -> J: ...

    async def wait(
        self,
        job: JobOrId,
        *,
        progress: OnProgress | None = None,
        timeout: float | None = None,
        interval: float | None = None,
    ) -> Job:
        """Waits until a job has succeeded, and returns it; a plain id is taken as that of an audit.

        ``progress`` is called after every poll with the work done and the total (steps of a fine-tune, texts of other
        jobs); ``interval`` is the time between polls, in seconds. Raises JobFailed (for an audit, AuditFailed) if the
        job failed or was cancelled, and TimeoutError after ``timeout`` seconds, in which case the job keeps running.
        """
        kind = protocol.kind_of(job)
        end = None if timeout is None else monotonic() + timeout
        for pause in protocol.pauses(interval):
            now = await self.get(kind, job)
            if progress is not None:
                progress(now.progress["done"], now.progress["total"])
            if now.is_final:
                return protocol.succeeded(now)
            if end is not None:
                left = end - monotonic()
                if left <= 0:
                    raise TimeoutError(f"{now!r} has not ended within {timeout} s")
                pause = min(pause, left)
            await asyncio.sleep(pause)
        raise AssertionError("pauses have no end")

    async def events(self, job: JobOrId) -> AsyncIterator[JobEvent]:
        """Follows a job until it has ended, and yields its events; a plain id is taken as that of an audit.

        Where the connection breaks off, the stream goes on with what was not seen; it raises Unreachable where
        ``retries`` more connections in a row bring nothing.
        """
        stream = EventStream(job, self._retries)
        while not stream.ended:
            response, error = await self._send(stream.call(), stream=True), None
            if not response.is_success:
                raise protocol.problem(response)
            try:
                async for line in response.aiter_lines():
                    if (event := stream.read(line)) is not None:
                        yield event
            except httpx.TransportError as broken:
                error = broken
            finally:
                await response.aclose()
            if not stream.ended:
                await asyncio.sleep(stream.pause(error))

    async def get(self, kind: type[J], job: J | str) -> J:
        """A job of this kind as it stands."""
        return kind(await self._ask(protocol.one(job, kind=kind)))

    async def get_audit(self, audit: AuditOrId) -> Audit:
        """An audit as it stands."""
        return await self.get(Audit, audit)

    def jobs(self, kind: type[J], *, status: Status | None = None, model: str | None = None) -> AsyncIterator[J]:
        """All jobs of this kind without their results, newest first."""
        return (kind(job) async for job in self._listed(kind.route, kind.listed, status=status, model=model))

    def audits(self, *, status: Status | None = None, model: str | None = None) -> AsyncIterator[Audit]:
        """All audits without their results, newest first."""
        return self.jobs(Audit, status=status, model=model)

    async def audit_scores(self, audit: AuditOrId) -> AuditScores:
        """The scores of the samples of an audit that has succeeded."""
        return protocol.scores(await self._send(protocol.one(audit, action="/scores")))

    async def memorization_map(self, job: Memorization | str) -> list[dict[str, Any]]:
        """The windows of a memorization job that has succeeded, along each text."""
        return protocol.lines(await self._send(protocol.one(job, action="/map", kind=Memorization)))

    @overload
    async def report(self, job: JobOrId, format: Literal["html"] = "html") -> ReportPage: ...

    @overload
    async def report(self, job: JobOrId, format: Literal["json"]) -> dict[str, Any]: ...

    @overload
    async def report(self, job: JobOrId, format: Literal["dsse"]) -> Envelope: ...

    async def report(self, job: JobOrId, format: ReportFormat = "html") -> ReportPage | dict[str, Any] | Envelope:
        """The report of a job that has succeeded; a plain id is taken as that of an audit.

        It is a page of HTML, the JSON that the page is made of, or that JSON signed (``dsse``), where the service has a
        key to sign with. Raises Conflict where the job has not succeeded, and where there is no such key.
        """
        return protocol.read_report(await self._send(protocol.report(job, format)), format)

    async def compare(self, a: AuditOrId, b: AuditOrId, *, question: ComparisonQuestion | None = None) -> Comparison:
        """Compares audit b with audit a on the samples that both have.

        With the question ``retain`` the answer's ``unlearning`` says whether the model of b, which was made to forget the
        members, treats them as the model of a does, which never saw them.
        """
        return Comparison(await self._ask(protocol.compare(a, b, question)))

    @overload
    async def cancel(self, job: str) -> Audit: ...

    @overload
    async def cancel(self, job: J) -> J: ...

    async def cancel(self, job: JobOrId) -> Job:
        """Cancels a job; a plain id is taken as that of an audit."""
        return protocol.kind_of(job)(await self._ask(protocol.one(job, "POST", "/cancel")))

    async def delete(self, job: JobOrId) -> None:
        """Deletes a job that has ended; a plain id is taken as that of an audit.

        The adapter of a fine-tune is kept; :meth:`delete_adapter` deletes it.
        """
        await self._ask(protocol.one(job, "DELETE"))

    async def upload(
        self,
        source: AsyncSource,
        *,
        media_type: str | None = None,
        retain: bool = True,
        keep_columns: bool = True,
        text_column: str | None = None,
        label_column: str | None = None,
        id_column: str | None = None,
        words: int | None = None,
        cut: CutSettings | None = None,
        name: str | None = None,
        chat_template: str | None = None,
    ) -> Dataset:
        """Uploads samples, or a document, as a dataset, in bounded memory.

        ``source`` is the path of a file (NDJSON, a JSON array, CSV, TSV or Parquet, plain or compressed with gzip or
        zstd; or plain text, Markdown, HTML, EPUB or a ZIP archive of these), the bytes of one, at once or piece by
        piece, or samples. ``media_type`` says what it is where the name of the file does not; NDJSON where there is no
        name. Without ``retain`` the texts are deleted once an audit has used them. Other columns come back with the
        scores, unless ``keep_columns`` is false. ``words`` cuts each text after so many words. An iterator is read
        once, so its upload is not tried again. ``AsyncClient`` also takes samples and pieces that come asynchronously.

        A document is cut into passages, each a sample of the document ``name``, which is the name of the file unless it
        is given; ``cut`` says how, and cuts the texts of samples as well. ``answer["cut"]`` counts what was left out.
        ``chat_template`` is the model whose template renders samples that are conversations.
        """
        columns = (text_column, label_column, id_column)
        call = protocol.upload(source, media_type, retain, keep_columns, *columns, words, cut, name, chat_template)
        return Dataset(await self._ask(call))

    async def upload_documents(
        self, documents: Documents, *, retain: bool = True, cut: CutSettings | None = None
    ) -> Dataset:
        """Uploads several documents as one dataset, in a ZIP archive.

        ``documents`` are files and folders by their paths, or contents by names whose endings tell their kinds. See
        :meth:`upload` for the other parameters. ``answer["cut"]["skipped"]`` names the files that are no text.
        """
        return Dataset(await self._ask(protocol.upload_documents(documents, retain, cut)))

    async def get_dataset(self, dataset: DatasetOrId) -> Dataset:
        """A dataset."""
        return Dataset(await self._ask(protocol.one_dataset(dataset)))

    def datasets(self) -> AsyncIterator[Dataset]:
        """All datasets, newest first."""
        return (Dataset(dataset) async for dataset in self._listed("/v1/datasets", "datasets"))

    async def delete_dataset(self, dataset: DatasetOrId) -> None:
        """Deletes a dataset with the statistics of its texts; audits of it keep their results."""
        await self._ask(protocol.one_dataset(dataset, "DELETE"))

    async def models(self) -> list[dict[str, Any]]:
        """The models of the service."""
        listed = await self._ask(Call("GET", "/v1/models"))
        return list(listed["models"])

    async def delete_adapter(self, model: str, name: str) -> None:
        """Deletes an adapter of a model, such as one that a fine-tune made."""
        await self._ask(protocol.one_adapter(model, name, "DELETE"))

    async def methods(self) -> dict[str, Any]:
        """The methods, decays and presets with their parameters."""
        return dict(await self._ask(Call("GET", "/v1/methods")))

    async def _listed(self, path: str, key: str, **query: str | None) -> AsyncIterator[Any]:
        """The entries of all pages."""
        after: str | None = None
        while True:
            page = await self._ask(protocol.page(path, query, after))
            for item in page[key]:
                yield item
            after = page.get("next")
            if after is None:
                return

    async def _ask(self, call: Call) -> Any:
        return protocol.answer(await self._send(call))

    async def _send(self, call: Call, *, stream: bool = False) -> httpx.Response:
        """The answer; where it is a success and a ``stream``, its body is still to be read."""
        tries_left = call.tries_left(self._retries)
        while True:
            content = None if call.upload is None else call.upload.async_chunks()
            request = call.build(self._http, content)
            try:
                response = await self._http.send(request, stream=stream)
                if stream and not response.is_success:
                    await response.aread()
            except httpx.TransportError as error:
                delay = protocol.retry_unreached(call, error, tries_left)
                if delay is None:
                    raise Unreachable(f"{request.method} {request.url}: {error}") from error
            else:
                delay = protocol.retry_after(response, tries_left)
                if delay is None:
                    return response
            tries_left -= 1
            await asyncio.sleep(delay)

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
