"""What a service does only now and then, over a transport that plays it."""

import asyncio
import itertools

import httpx
import pytest

import pdr_audit
from pdr_audit import AsyncClient, Client
from pdr_audit import _protocol as protocol

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
        Client("http://localhost:9").models()


def test_an_audit_that_does_not_succeed_raises() -> None:
    failed = {**AUDIT, "status": "failed", "error": {"detail": "the model failed"}}
    with pytest.raises(pdr_audit.AuditFailed, match="audit a failed: the model failed"):
        Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, json=failed))).wait("a")
    running = httpx.MockTransport(lambda _: httpx.Response(200, json=AUDIT))
    with pytest.raises(TimeoutError, match="a running 1/2"):
        Client(transport=running).wait("a", timeout=0.05, interval=0.01)
