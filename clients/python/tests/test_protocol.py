"""Rare answers of a service, over a transport that plays it."""

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import numpy
import pandas
import pytest

import pdr_audit
from pdr_audit import AsyncClient, AuditEvent, AuditScores, Client
from pdr_audit import _event_stream as event_stream
from pdr_audit import _protocol as protocol
from pdr_audit._upload import Upload
from pdr_audit.types import ComparedTexts, Evidence, Sample, SampleScores, TextError

AUDIT = {"id": "a", "status": "running", "progress": {"done": 1, "total": 2}}
PROBLEM = {"title": "t", "status": 503, "detail": "the queue is full", "request_id": "r"}


def busy(times: int) -> httpx.MockTransport:
    """Refuses so many times, then lists no models."""
    count = itertools.count()

    def handle(_: httpx.Request) -> httpx.Response:
        if next(count) < times:
            return httpx.Response(503, json=PROBLEM, headers={"retry-after": "0"})
        return httpx.Response(200, json={"models": []})

    return httpx.MockTransport(handle)


def test_a_key_goes_with_every_request() -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"models": [dict(request.headers)]})

    sent = Client(transport=httpx.MockTransport(handle), key="pdr_0", headers={"x-more": "1"}).models()[0]
    assert (sent["authorization"], sent["x-more"]) == ("Bearer pdr_0", "1")
    assert "authorization" not in Client(transport=httpx.MockTransport(handle)).models()[0]


def test_a_full_queue_is_asked_again() -> None:
    assert Client(transport=busy(2), retries=2).models() == []
    with pytest.raises(pdr_audit.Unavailable, match="the queue is full") as caught:
        Client(transport=busy(3), retries=2).models()
    assert (caught.value.status, caught.value.request_id) == (503, "r")

    async def ask(times: int) -> object:
        async with AsyncClient(transport=busy(times), retries=2) as client:
            return await client.models()

    assert asyncio.run(ask(2)) == []
    with pytest.raises(pdr_audit.Unavailable):
        asyncio.run(ask(3))


def test_the_time_to_wait_is_the_one_named() -> None:
    def delay(status: int, value: str | None, tries_left: int = 1) -> float | None:
        headers = {} if value is None else {"retry-after": value}
        return protocol.retry_after(httpx.Response(status, headers=headers), tries_left)

    assert delay(503, "7") == 7
    assert delay(503, "900") == protocol.LONGEST_RETRY
    assert delay(503, None) == delay(503, "Wed, 21 Oct 2015 07:28:00 GMT") == protocol.USUAL_RETRY
    assert delay(503, "7", tries_left=0) is delay(500, "7") is delay(200, None) is None


def test_what_is_no_problem_of_the_service_is_shown() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(502, text="bad gateway"))
    with pytest.raises(pdr_audit.ProblemError, match="502: bad gateway"):
        Client(transport=transport).models()


def test_nobody_there_is_said() -> None:
    with pytest.raises(pdr_audit.Unreachable, match="GET http://localhost:9/v1/models"):
        Client("http://localhost:9", retries=0).models()
    with pytest.raises(pdr_audit.Unreachable, match="protocol"):
        Client("localhost:9").models()


def cut(times: int) -> httpx.MockTransport:
    """Breaks so many connections, then answers."""
    count = itertools.count()

    def handle(_: httpx.Request) -> httpx.Response:
        if next(count) < times:
            raise httpx.ReadError("cut")
        return httpx.Response(200, json={"models": [], "results": []})

    return httpx.MockTransport(handle)


def test_what_only_reads_is_asked_again_where_no_answer_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "USUAL_RETRY", 0.01)
    assert Client(transport=cut(2), retries=2).models() == []
    with pytest.raises(pdr_audit.Unreachable, match="cut"):
        Client(transport=cut(3), retries=2).models()
    with pytest.raises(pdr_audit.Unreachable, match="POST .*cut"):
        Client(transport=cut(1), retries=2).score("a text")

    async def ask(times: int) -> object:
        async with AsyncClient(transport=cut(times), retries=2) as client:
            return await client.models()

    assert asyncio.run(ask(2)) == []
    with pytest.raises(pdr_audit.Unreachable):
        asyncio.run(ask(3))


PLAN = {"created": "2026-11-26T20:14:49Z", "content": "{}"}
DATASET = {"id": "sha256:0", "samples": 1, "members": 0, "non_members": 0}


def test_what_does_nothing_twice_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "USUAL_RETRY", 0.01)

    def service(*failures: int | None) -> tuple[httpx.MockTransport, list[bytes]]:
        """Fails with these statuses, or by breaking the connection; keeps the bodies."""
        bodies: list[bytes] = []

        def handle(request: httpx.Request) -> httpx.Response:
            bodies.append(request.content)
            failure = failures[len(bodies) - 1] if len(bodies) <= len(failures) else 200
            if failure is None:
                raise httpx.ReadError("cut")
            answer = {200: AUDIT | DATASET | PLAN, 503: PROBLEM}[failure]
            return httpx.Response(failure, json=answer, headers={"retry-after": "0"})

        return httpx.MockTransport(handle), bodies

    transport, bodies = service(None, 503)
    Client(transport=transport).audit([{"text": "a"}], idempotency_key="k")
    assert len(bodies) == 3 and len(set(bodies)) == 1
    transport, bodies = service(None, 503)
    Client(transport=transport).measure_memorization("a", idempotency_key="k")
    assert bodies == [b'{"texts":["a"]}'] * 3
    transport, bodies = service(None, 503)
    Client(transport=transport).plan([{"text": "a"}])
    assert bodies == [b'{"samples":[{"text":"a"}]}'] * 3
    transport, bodies = service(None, 503)
    Client(transport=transport).upload_documents({"a.txt": "a"})
    assert len(bodies) == 3 and all(body.startswith(b"PK") for body in bodies)
    transport, bodies = service(None)
    with pytest.raises(pdr_audit.Unreachable):
        Client(transport=transport).audit([{"text": "a"}])
    transport, bodies = service(None, 503)
    Client(transport=transport).upload([{"text": "a"}])
    assert bodies == [b'{"text": "a"}\n'] * 3
    for failure, error in ((None, pdr_audit.Unreachable), (503, pdr_audit.Unavailable)):
        transport, bodies = service(failure)
        with pytest.raises(error):
            Client(transport=transport).upload(iter([b"{}"]))
        assert bodies == [b"{}"]


def test_a_maximum_cost_is_sent_and_the_forecast_is_read() -> None:
    served = {"requests": 8, "estimated_tokens": 800, "estimated_cost": 0.002}
    bodies: list[Any] = []

    def handle(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        progress = {"done": 0, "total": 1, "forecast": {"works": 1, "texts": 1, "estimated_tokens": 1, "served": served}}
        return httpx.Response(200, json=AUDIT | PLAN | {"progress": progress, "served": served})

    async def asked() -> tuple[pdr_audit.Audit, pdr_audit.Plan]:
        async with AsyncClient(transport=httpx.MockTransport(handle)) as service:
            return await service.audit(samples, max_cost=0.5), await service.plan(samples, max_cost=0.5)

    samples: list[Sample] = [{"text": "a"}]
    client = Client(transport=httpx.MockTransport(handle))
    answers = [(client.audit(samples, max_cost=0), client.plan(samples, max_cost=0)), asyncio.run(asked())]
    assert [body["max_cost"] for body in bodies] == [0, 0, 0.5, 0.5]
    for audit, plan in answers:
        assert audit.progress["forecast"]["served"] == plan.served == served
    assert pdr_audit.Plan(PLAN | {"id": "sha256:0"}).served is None


def test_small_pieces_are_sent_together() -> None:
    count = 10_000
    chunks = list(Upload({"text": str(index)} for index in range(count)).chunks())
    assert b"".join(chunks).count(b"\n") == count
    assert 1 < len(chunks) < 10


def test_events_go_on_where_the_connection_broke_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "PAUSE", 0.01)
    connections = [
        ([": comment\n\n", "id: 2\nevent: progress\ndata: {\"done\":0,\"total\":2}\n\nid: 3\nevent: sta"], True),
        (["id: 3\nevent: status\ndata: {\"status\":\"running\"}\n\n"], False),
        ([], False),
        (["id: 8\nevent: progress\ndata: {\"done\":2,\"total\":2}\n\n"], True),
        (["id: 9\nevent: status\ndata: {\"status\":\"succeeded\"}\n\n"], False),
    ]

    class Body(httpx.SyncByteStream, httpx.AsyncByteStream):
        def __init__(self, pieces: list[str], breaks: bool) -> None:
            self.pieces, self.breaks = pieces, breaks

        def __iter__(self) -> Iterator[bytes]:
            yield from (piece.encode() for piece in self.pieces)
            if self.breaks:
                raise httpx.ReadError("cut")

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for piece in self:
                yield piece

    def service() -> tuple[httpx.MockTransport, list[str | None]]:
        seen: list[str | None] = []

        def handle(request: httpx.Request) -> httpx.Response:
            seen.append(request.headers.get("last-event-id"))
            pieces, breaks = connections[len(seen) - 1] if len(seen) <= len(connections) else ([], False)
            return httpx.Response(200, stream=Body(pieces, breaks))

        return httpx.MockTransport(handle), seen

    expected = [
        AuditEvent(2, "progress", {"done": 0, "total": 2}),
        AuditEvent(3, "status", {"status": "running"}),
        AuditEvent(8, "progress", {"done": 2, "total": 2}),
        AuditEvent(9, "status", {"status": "succeeded"}),
    ]
    transport, seen = service()
    assert list(Client(transport=transport, retries=2).events("a")) == expected
    assert seen == [None, "2", "3", "3", "8"]

    async def follow(transport: httpx.MockTransport) -> list[AuditEvent]:
        async with AsyncClient(transport=transport, retries=2) as client:
            return [event async for event in client.events("a")]

    transport, seen = service()
    assert asyncio.run(follow(transport)) == expected
    assert seen == [None, "2", "3", "3", "8"]

    del connections[4:]
    transport, seen = service()
    with pytest.raises(pdr_audit.Unreachable, match="/v1/audits/a/events: the stream ends before the job"):
        list(Client(transport=transport, retries=2).events("a"))
    assert seen == [None, "2", "3", "3", "8", "8"]


def test_an_audit_that_does_not_succeed_raises() -> None:
    failed = {**AUDIT, "status": "failed", "error": {"detail": "the model failed"}}
    with pytest.raises(pdr_audit.AuditFailed, match="audit a failed: the model failed"):
        Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, json=failed))).wait("a")
    finetune = pdr_audit.Finetune(AUDIT)
    with pytest.raises(pdr_audit.JobFailed, match="finetune a failed: the model failed") as caught:
        Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, json=failed))).wait(finetune)
    assert not isinstance(caught.value, pdr_audit.AuditFailed) and caught.value.job.id == "a"
    running = httpx.MockTransport(lambda _: httpx.Response(200, json=AUDIT))
    with pytest.raises(TimeoutError, match="a running 1/2"):
        Client(transport=running).wait("a", timeout=0.05, interval=0.01)


def test_an_audit_is_looked_at_once_more_at_the_end_of_the_time() -> None:
    def looks() -> httpx.MockTransport:
        count = itertools.count()

        def handle(_: httpx.Request) -> httpx.Response:
            return httpx.Response(200, json=AUDIT if next(count) == 0 else {**AUDIT, "status": "succeeded"})

        return httpx.MockTransport(handle)

    async def wait() -> bool:
        async with AsyncClient(transport=looks()) as client:
            return (await client.wait("a", timeout=0.1, interval=60)).is_final

    start = time.monotonic()
    assert Client(transport=looks()).wait("a", timeout=0.1, interval=60).is_final
    assert asyncio.run(wait())
    assert 0.2 <= time.monotonic() - start < 30
    assert Client(transport=looks()).wait("a", interval=0).is_final


def test_cells_of_a_frame_are_plain() -> None:
    frame = pandas.DataFrame(
        {
            "id": [3, None],
            "text": pandas.array(["a", "b"], dtype="string"),
            "label": pandas.array([1, None], dtype="Int64"),
            "group": pandas.array([None, "g"], dtype="string"),
            "neighbors": [numpy.array(["c", "d"], dtype=object), None],
        }
    )
    assert frame["id"].dtype == float
    body = protocol.audit(frame, *[None] * 11).body
    assert body == {
        "samples": [{"id": 3, "text": "a", "label": 1, "neighbors": ["c", "d"]}, {"text": "b", "group": "g"}]
    }
    assert type(body["samples"][0]["id"]) is int
    frame = pandas.DataFrame({"text": ["a", "b"], "label": pandas.array([True, None], dtype="boolean")})
    assert protocol.audit(frame, *[None] * 11).body == {
        "samples": [{"text": "a", "label": True}, {"text": "b"}]
    }


def test_a_method_without_scores_has_a_column() -> None:
    def sample(index: int, scores: dict[str, float], *failed: str) -> SampleScores:
        errors: list[TextError] = [{"code": "c", "detail": "d", "label": label} for label in failed]
        errors.append({"code": "c", "detail": "of the text"})
        return {"index": index, "scored_tokens": 1, "truncated": False, "scores": scores, "errors": errors}

    scores = AuditScores([sample(0, {"b": 1.0}, "a", "zlib"), sample(1, {"a": 2.0, "b": 3.0}, "zlib")])
    frame = scores.to_frame()
    assert list(frame.columns) == ["scored_tokens", "truncated", "b", "a", "zlib"]
    assert frame["zlib"].isna().all() and frame.loc[1, "a"] == 2.0


def test_no_control_is_told_from_none_named() -> None:
    def submitted(evidence: Evidence | None) -> object:
        return protocol.audit([{"text": "a"}], None, None, None, None, evidence, *[None] * 6).body

    def tested(texts: ComparedTexts) -> object:
        return protocol.test(texts, *[None] * 9).body

    compared: ComparedTexts = {"kind": "dataset", "dataset": "sha256:0"}
    assert tested(compared) == compared
    assert tested({**compared, "control": None}) == {**compared, "control": None}
    assert submitted(None) == {"samples": [{"text": "a"}]}
    assert submitted({"control": None, "primary": "ref"}) == {
        "samples": [{"text": "a"}],
        "control": None,
        "primary": "ref",
    }
