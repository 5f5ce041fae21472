"""Server-sent events of a job, read on where a connection breaks off. Nothing here does I/O."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import httpx

from . import _protocol as protocol
from ._protocol import Call, JobOrId
from .errors import Unreachable
from .events import FINAL, JobEvent

#: Seconds before a stream that ended before its job is opened again.
PAUSE = 1.0


@dataclass
class EventStream:
    """The events of one job, over as many connections as it takes."""

    job: JobOrId
    #: The number of connections in a row that may bring nothing.
    retries: int
    ended: bool = False
    _last_id: int | None = None
    _failures: int = 0
    _fields: dict[str, str] = field(default_factory=dict)

    def call(self) -> Call:
        """The request for the events that were not seen."""
        headers = {"accept": "text/event-stream"}
        if self._last_id is not None:
            headers["last-event-id"] = str(self._last_id)
        self._fields.clear()
        call = protocol.one(self.job, action="/events")
        return Call(call.method, call.path, headers=headers)

    def read(self, line: str) -> JobEvent | None:
        """The event that ends with this line."""
        if line:
            # A comment, which only keeps the connection alive, is a field without a name.
            name, _, value = line.partition(":")
            self._fields[name] = value.removeprefix(" ")
            return None
        fields, self._fields = self._fields, {}
        if "data" not in fields:
            return None
        event = JobEvent(int(fields["id"]), fields["event"], json.loads(fields["data"]))
        self._last_id, self._failures = event.id, 0
        self.ended = event.name == "status" and event.data["status"] in FINAL
        return event

    def pause(self, error: httpx.TransportError | None) -> float:
        """The seconds until the stream is opened again, after it broke off with this error or just ended.

        Raises Unreachable where too many connections brought nothing.
        """
        self._failures += 1
        if self._failures > self.retries:
            why = str(error) if error else "the stream ends before the job"
            raise Unreachable(f"GET {self.call().path}: {why}") from error
        return PAUSE
