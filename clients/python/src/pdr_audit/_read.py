"""Reading of files that ``pdr-audit`` writes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast, overload

from . import _files
from ._html import path as at
from .audit import Audit, AuditScores
from .audit_run import AuditRun
from .canaries import Canaries
from .comparison import Comparison
from .errors import InvalidFile
from .events import FINAL
from .job import Calibration, Finetune, Job, Memorization, Test
from .plan import Plan
from .reports import Envelope
from .scores import Scores

#: All that can be read.
Readable: TypeAlias = Job | Comparison | Plan | Canaries | Envelope | AuditScores | Scores
R = TypeVar("R", bound=Readable)

REPORT, REQUEST, PRIVATE, COMMITMENT = "report.json", "request.json", "private.json", "commitment"
#: The fields by which a report is known, in this order.
_KINDS: list[tuple[tuple[str, ...], type[Readable]]] = [
    (("samples", "methods", "provenance", "position_profile"), Audit),
    (("windows", "summary"), Memorization),
    (("kind", "verdict", "provenance"), Test),
    (("adapter", "steps"), Finetune),
    (("a", "b", "methods"), Comparison),
    (("methods", "clusters"), Calibration),
    (("id", "created", "content"), Plan),
    (("method", "nonce", "canaries"), Canaries),
    (("payloadType", "payload", "signatures"), Envelope),
]


@overload
def read(path: str | os.PathLike[str]) -> Readable: ...


@overload
def read(path: str | os.PathLike[str], kind: type[R]) -> R: ...


def read(path: str | os.PathLike[str], kind: type[Any] | None = None) -> Any:
    """Reads a file or folder that the command line wrote, or an answer of the service that was saved.

    A folder is one of ``audit --out``, which is an :class:`AuditRun`, or of ``canary make``. A file is the JSON that a
    command printed with ``--format json``, a plan, the private part of canaries, a signed report, or scores as lines of
    JSON (``.ndjson``, ``.jsonl``). A report without a job has no ``id``, so a client refuses it.

    Raises InvalidFile where it is none of these, or not of the ``kind`` that was asked for.
    """
    place = Path(path)
    if place.is_dir():
        found = _folder(place)
    elif place.suffix.lower() in (".ndjson", ".jsonl"):
        found = _lines(place)
    else:
        found = _document(place)
    if kind is not None and not isinstance(found, kind):
        raise InvalidFile(place, f"it is {_named(type(found))}, not {_named(kind)}")
    return found


def _named(kind: type[Any]) -> str:
    return f"an {kind.__name__}" if kind.__name__.startswith(("A", "E")) else f"a {kind.__name__}"


def _folder(folder: Path) -> Readable:
    if (folder / REPORT).is_file():
        found = _document(folder / REPORT)
        if not isinstance(found, Audit):
            raise InvalidFile(folder / REPORT, f"it is {_named(type(found))}, and the folder of an audit has an Audit")
        return AuditRun(folder, cast("dict[str, Any]", found.answer))
    if (folder / REQUEST).is_file():
        raise InvalidFile(folder, f"the audit has not ended; go on with `pdr-audit audit --resume {folder}`")
    if (folder / PRIVATE).is_file():
        return _document(folder / PRIVATE)
    raise InvalidFile(folder, f"it is no folder of an audit or of canaries: it has neither {REPORT} nor {PRIVATE}")


def _lines(file: Path) -> AuditScores | Scores:
    rows = list(_files.scored(file))
    if not rows:
        raise InvalidFile(file, "it has no scores")
    if "text_digest" in rows[0]:
        return AuditScores(cast("list[Any]", rows))
    failed = [error["label"] for row in rows for error in row["errors"] if "label" in error]
    labels = dict.fromkeys([label for row in rows for label in row["scores"]] + failed)
    return Scores({"methods": [{"label": label} for label in labels], "results": rows})


def _document(file: Path) -> Readable:
    document = _files.json_object(file)
    status = document.get("status")
    if isinstance(status, str) and status != "succeeded":
        when = "it has no report" if status in FINAL else "it has a report once it has succeeded"
        raise InvalidFile(file, f"the job is {status}; {when}")
    is_job = isinstance(document.get("results"), dict)
    report = document["results"] if is_job else document
    kind = next((kind for fields, kind in _KINDS if all(field in report for field in fields)), None)
    if kind is None:
        raise InvalidFile(file, "no report of pdr-audit is like this")
    if fault := _fault(report, kind):
        raise InvalidFile(file, fault)
    if kind is Plan:
        return _plan(file, report)
    if kind is Envelope:
        return _envelope(file, report)
    if kind is Canaries:
        return _canaries(file, report)
    if issubclass(kind, Job):
        if status is not None and not _is_job(document):
            raise InvalidFile(file, "the job has no `id`, or no `progress` with numbers")
        job = kind(document if status is not None else _answer(kind, report))
        job.source = file
        return job
    return cast("type[Comparison]", kind)(report)


def _is_job(document: dict[str, Any]) -> bool:
    counts = (at(document, "progress", name) for name in ("done", "total"))
    return isinstance(document.get("id"), str) and all(isinstance(count, int) for count in counts)


def _answer(kind: type[Job], report: dict[str, Any]) -> dict[str, Any]:
    """The answer of a service to which the report belongs, had there been one."""
    total = max((_size(method) for method in report["methods"]), default=0) if kind is Calibration else _total(report)
    answer = {"id": "", "status": "succeeded", "progress": {"done": total, "total": total}, "error": None}
    return answer | {"results": report} if kind is not Calibration else report | answer


def _size(method: dict[str, Any]) -> int:
    size = method.get("size")
    return size if isinstance(size, int) else 0


def _total(report: dict[str, Any]) -> int:
    """The work that the job had to do, in texts or steps."""
    counted = at(report, "samples", "total")
    if isinstance(counted, int):
        return counted
    lists = (report.get(name) for name in ("texts", "control", "steps"))
    return sum(len(listed) for listed in lists if isinstance(listed, list))


def _fault(report: dict[str, Any], kind: type[Readable]) -> str | None:
    """The first fault that would keep the report from being shown."""
    methods = report.get("methods", [])
    if not isinstance(methods, list):
        return "`methods` is not a list"
    for place, method in enumerate(methods):
        if not isinstance(at(method, "label"), str):
            return f"/methods/{place} has no label"
    warnings = report.get("warnings", [])
    if not isinstance(warnings, list) or not all(isinstance(at(warning, "detail"), str) for warning in warnings):
        return "`warnings` is not a list of objects with a `detail`"
    verdict = report.get("verdict")
    if verdict is None:
        return "`verdict` is missing" if kind is Test else None
    if not isinstance(at(verdict, "sentence"), str):
        return "`verdict` has no sentence"
    assumptions = at(verdict, "assumptions") or []
    is_list = isinstance(assumptions, list) and all(isinstance(assumption, str) for assumption in assumptions)
    return None if is_list else "`verdict` has assumptions that are not texts"


def _plan(file: Path, document: dict[str, Any]) -> Plan:
    content = document["content"]
    if not isinstance(content, str):
        raise InvalidFile(file, "`content` is not a text")
    if f"sha256:{hashlib.sha256(content.encode()).hexdigest()}" != document["id"]:
        raise InvalidFile(file, "the plan was changed: its content has another SHA-256 than its id")
    return Plan(document)


def _envelope(file: Path, document: dict[str, Any]) -> Envelope:
    if not isinstance(document["payload"], str) or not isinstance(document["signatures"], list):
        raise InvalidFile(file, "`payload` is not a text, or `signatures` is not a list")
    try:
        return Envelope(document)
    except ValueError as error:
        raise InvalidFile(file, str(error)) from error


def _canaries(file: Path, document: dict[str, Any]) -> Canaries:
    canaries, method, nonce = (document[name] for name in ("canaries", "method", "nonce"))
    if not isinstance(canaries, list) or not canaries:
        raise InvalidFile(file, "`canaries` is no list of canaries")
    for place, canary in enumerate(canaries):
        twins = at(canary, "twins")
        is_whole = isinstance(at(canary, "text"), str) and isinstance(twins, list) and twins
        if not is_whole or not all(isinstance(twin, str) for twin in twins):
            raise InvalidFile(file, f"/canaries/{place} is not a text with its twins")
    if not isinstance(method, (str, dict)) or not isinstance(nonce, str):
        raise InvalidFile(file, "`method` or `nonce` is not as `pdr-audit canary make` writes them")
    beside = file.with_name(COMMITMENT)
    commitment = _files.text(beside).strip() if beside.is_file() else None
    return Canaries(canaries, method, nonce, commitment)
