"""The client that waits for its answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any

import httpx

from . import _protocol as protocol
from ._protocol import Call, Samples, Texts
from .audit import Audit, AuditScores
from .errors import Unreachable
from .scores import Scores
from .types import Method, Metrics, Overflow, Status


class Client:
    """A client of one service; safe to use from several threads.

    A request that the service cannot take now (503) is sent again after the time that the service names, and one that
    only reads (GET) 5 s after its connection failed, up to ``retries`` times. ``headers`` go with every request;
    ``transport`` is one of httpx.
    """

    def __init__(
        self,
        base_url: str = protocol.DEFAULT_URL,
        *,
        timeout: float = protocol.DEFAULT_TIMEOUT,
        retries: int = protocol.DEFAULT_RETRIES,
        headers: Mapping[str, str] | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._http = httpx.Client(base_url=base_url, timeout=timeout, headers=headers, transport=transport)
        self._retries = retries

    def score(
        self,
        texts: Texts,
        *,
        methods: Iterable[Method] | None = None,
        model: str | None = None,
        overflow: Overflow | None = None,
        tokens: bool = False,
    ) -> Scores:
        """Scores texts; ``tokens`` asks for every token with what it adds to the scores."""
        return Scores(self._ask(protocol.score(texts, methods, model, overflow, tokens)))

    def audit(
        self,
        samples: Samples,
        *,
        methods: Iterable[Method] | None = None,
        model: str | None = None,
        overflow: Overflow | None = None,
        metrics: Metrics | None = None,
        name: str | None = None,
    ) -> Audit:
        """Submits an audit; see :meth:`wait` for its end."""
        return Audit(self._ask(protocol.submit(samples, methods, model, overflow, metrics, name)))

    def wait(
        self,
        audit: Audit | str,
        *,
        progress: Callable[[int, int], object] | None = None,
        timeout: float | None = None,
        interval: float | None = None,
    ) -> Audit:
        """The audit, once it has succeeded.

        ``progress`` is called with the samples done and all samples whenever the service was asked, every ``interval``
        seconds. Raises AuditFailed where it failed or was cancelled, and TimeoutError after ``timeout`` seconds; the
        audit goes on then.
        """
        end = None if timeout is None else time.monotonic() + timeout
        for pause in protocol.pauses(interval):
            now = self.get_audit(audit)
            if progress is not None:
                progress(now.progress["done"], now.progress["total"])
            if now.is_final:
                return protocol.succeeded(now)
            if end is not None:
                left = end - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"{now!r} has not ended within {timeout} s")
                pause = min(pause, left)
            time.sleep(pause)
        raise AssertionError("pauses have no end")

    def get_audit(self, audit: Audit | str) -> Audit:
        """An audit as it stands."""
        return Audit(self._ask(protocol.one(audit)))

    def audits(self, *, status: Status | None = None, model: str | None = None) -> Iterator[Audit]:
        """All audits without their results, newest first."""
        after: str | None = None
        while True:
            page = self._ask(protocol.page(status, model, after))
            yield from map(Audit, page["audits"])
            after = page.get("next")
            if after is None:
                return

    def audit_scores(self, audit: Audit | str) -> AuditScores:
        """The scores of the samples of an audit that has succeeded."""
        return protocol.scores(self._send(protocol.one(audit, action="/scores")))

    def cancel(self, audit: Audit | str) -> Audit:
        """Stops an audit."""
        return Audit(self._ask(protocol.one(audit, "POST", "/cancel")))

    def delete(self, audit: Audit | str) -> None:
        """Forgets an audit that has ended."""
        self._ask(protocol.one(audit, "DELETE"))

    def models(self) -> list[dict[str, Any]]:
        """The models of the service."""
        return list(self._ask(Call("GET", "/v1/models"))["models"])

    def methods(self) -> dict[str, Any]:
        """The methods, decays and presets with their parameters."""
        return dict(self._ask(Call("GET", "/v1/methods")))

    def _ask(self, call: Call) -> Any:
        return protocol.answer(self._send(call))

    def _send(self, call: Call) -> httpx.Response:
        tries_left = self._retries
        while True:
            request = call.build(self._http)
            try:
                response = self._http.send(request)
            except httpx.TransportError as error:
                delay = protocol.retry_unreached(call, error, tries_left)
                if delay is None:
                    raise Unreachable(f"{request.method} {request.url}: {error}") from error
            else:
                delay = protocol.retry_after(response, tries_left)
                if delay is None:
                    return response
            tries_left -= 1
            time.sleep(delay)

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
