"""Reports, and what notebooks show."""

import asyncio
import base64
import html
import json
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest

import pdr_audit
from pdr_audit import (
    AsyncClient,
    Audit,
    Calibration,
    Client,
    Comparison,
    Envelope,
    Figure,
    Finetune,
    Job,
    Memorization,
    ReportPage,
    read,
)
from pdr_audit.types import Evidence, Sample

EVIL = '<script>alert("1")</script>'


class Page(HTMLParser):
    """The elements of HTML, its text, and the texts of its cells."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.cells: list[str] = []
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.elements and self.elements[-1][0] in ("th", "td"):
            self.cells.append(data)


def succeeded(kind: type[Job], results: dict[str, Any], **answer: Any) -> Job:
    progress = {"done": 1, "total": 1}
    return kind({"id": "a", "status": "succeeded", "progress": progress, "results": results, **answer})


def test_reports_of_every_kind_are_pages_and_json(client: Client, samples: list[Sample], url: str) -> None:
    jobs: list[Job] = [
        client.audit(samples, methods=["loss"]),
        client.calibrate(samples[20:], methods=["loss"]),
        client.test({"kind": "rank", "canaries": [{"text": "a b c", "twins": ["c b a"]}]}, methods=["loss"]),
        client.measure_memorization(samples[0]["text"], prefix=8, suffix=8),
    ]

    async def page(job: Job) -> ReportPage:
        async with AsyncClient(url) as service:
            return await service.report(job)

    for job in jobs:
        ended = client.wait(job)
        report = client.report(job)
        assert report.html.startswith("<!DOCTYPE html>") and asyncio.run(page(job)) == report
        content = client.report(job, "json")
        assert content[
            "methods" if isinstance(job, Calibration) else "windows" if isinstance(job, Memorization) else "verdict"
        ]
        assert ended.results is None or content == ended.results
        shown = Page(ended._repr_html_())
        assert ended.sentence is None or ended.sentence in shown.text
        assert "script" not in {tag for tag, _ in shown.elements}
    assert client.report(jobs[0].id) == client.report(jobs[0])


def test_a_report_takes_a_job_that_has_succeeded(client: Client, samples: list[Sample]) -> None:
    job = client.finetune(samples[20:], name="never", optimizer={"epochs": 100})
    try:
        with pytest.raises(pdr_audit.Conflict):
            client.report(job)
    finally:
        client.cancel(job)
    with pytest.raises(pdr_audit.NotFound):
        client.report("nope")
    with pytest.raises(ValueError, match="'pdf', and may be one of html, json, dsse"):
        client.report(job, "pdf")  # type: ignore[call-overload]


def test_a_page_is_shown_without_scripts(tmp_path: Path) -> None:
    page = ReportPage(f"<!DOCTYPE html><p title='\"'>é{EVIL}</p>")
    [(tag, attributes)] = Page(page._repr_html_()).elements
    assert (tag, attributes["sandbox"], attributes["srcdoc"]) == ("iframe", "", page.html)
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_bytes() == page.html.encode()
    [(tag, attributes)] = Page(Figure('"><script>', f"<svg>{EVIL}</svg>")._repr_html_()).elements
    source = attributes["src"] or ""
    assert (tag, attributes["alt"]) == ("img", '"><script>')
    assert base64.b64decode(source.removeprefix("data:image/svg+xml;base64,")).decode() == f"<svg>{EVIL}</svg>"


def test_a_signed_report_is_an_envelope() -> None:
    statement = {"_type": "https://in-toto.io/Statement/v1", "predicate": {"a": "é?>"}}
    payload = json.dumps(statement, ensure_ascii=False).encode()
    signatures = [{"keyid": "k", "sig": "c2ln"}]

    def service(encoded: str) -> httpx.MockTransport:
        def handle(request: httpx.Request) -> httpx.Response:
            assert request.headers["accept"] == "application/vnd.dsse.envelope+json"
            if request.url.path != "/v1/tests/t/report":
                return httpx.Response(409, json={"title": "t", "status": 409, "detail": "no key to sign with"})
            envelope = {"payloadType": "application/vnd.in-toto+json", "payload": encoded, "signatures": signatures}
            return httpx.Response(200, json=envelope, headers={"content-type": request.headers["accept"]})

        return httpx.MockTransport(handle)

    test = pdr_audit.Test({"id": "t", "status": "succeeded", "progress": {"done": 1, "total": 1}})
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        transport = service(encode(payload).decode())
        envelope = Client(transport=transport).report(test, "dsse")
        assert (envelope.payload, envelope.statement, envelope.signatures) == (payload, statement, signatures)
        assert repr(envelope) == "<Envelope application/vnd.in-toto+json 1 signatures>"

    async def signed() -> Envelope:
        async with AsyncClient(transport=transport) as service:
            return await service.report(test, "dsse")

    assert asyncio.run(signed()).answer == envelope.answer
    with pytest.raises(pdr_audit.Conflict, match="no key to sign with"):
        Client(transport=transport).report("a", "dsse")
    with pytest.raises(ValueError, match="not base64"):
        Client(transport=service("é")).report(test, "dsse")


def test_a_service_with_a_key_signs_its_reports(
    client: Client, signing_url: str, signing_key: Path, samples: list[Sample], program: Callable[..., str], tmp_path: Path
) -> None:
    with Client(signing_url) as signing:
        audit = signing.wait(signing.audit(samples, methods=["loss"]))
        calibration = signing.wait(signing.calibrate(samples[20:], methods=["loss"]))
        envelope, report = signing.report(audit, "dsse"), signing.report(audit, "json")
        of_calibration, calibrated = signing.report(calibration, "dsse"), signing.report(calibration, "json")

    async def signed() -> Envelope:
        async with AsyncClient(signing_url) as service:
            return await service.report(audit, "dsse")

    assert asyncio.run(signed()).answer == envelope.answer
    predicate = envelope.statement["predicate"]
    assert predicate["report"] == report == audit.results
    assert (predicate["kind"], predicate["run"]["job"]) == ("audit", audit.id)
    assert of_calibration.statement["predicate"]["report"] == calibrated
    path = tmp_path / "report.dsse.json"
    envelope.save(path)
    assert read(path, Envelope).answer == envelope.answer
    key = signing_key.with_name("key.pub.pem")
    checked = json.loads(program("verify", path, "--key", key, "--format", "json"))
    assert [step["state"] for step in checked["steps"][:2]] == ["holds", "holds"]
    changed = envelope.payload.replace(audit.id.encode(), audit.id[::-1].encode())
    Envelope({**envelope.answer, "payload": base64.b64encode(changed).decode()}).save(path)
    with pytest.raises(subprocess.CalledProcessError) as failed:
        program("verify", path, "--key", key)
    assert failed.value.returncode == 1
    with pytest.raises(pdr_audit.Conflict):
        client.report(client.wait(client.audit(samples, methods=["loss"])), "dsse")


VERDICT: dict[str, Any] = {"sentence": f"Inconclusive: {EVIL}", "assumptions": [f"none {EVIL}"]}
METHOD: dict[str, Any] = {
    "label": f"ref({EVIL})",
    "scored": 40,
    "auroc": 0.74321,
    "auroc_standard_error": None,
    "bootstrap": {"auroc": {"interval": [0.7, 0.78]}},
    "p_value_adjusted": 0.00002,
    "control": {"auroc": 0.5, "difference": 0.2432, "p_value_adjusted": 0.25},
}


def test_an_audit_shows_the_sentence_of_its_verdict_and_its_methods() -> None:
    results = {
        "verdict": VERDICT,
        "methods": [METHOD],
        "warnings": [{"code": "c", "detail": f"few {EVIL}"}],
        "plan": {"planned": False},
        "provenance": {"request": {"metrics": {"bootstrap": {"confidence": 0.9}}}},
    }
    audit = succeeded(Audit, results)
    page = Page(audit._repr_html_())
    assert "script" not in {tag for tag, _ in page.elements} and EVIL not in audit._repr_html_()
    for shown in (VERDICT["sentence"], METHOD["label"], f"few {EVIL}", f"none {EVIL}", "unplanned: ", "90 % bootstrap interval"):
        assert shown in page.text
    for number in ("0.743", "0.700 to 0.780", "2.0e-05", "0.243", "0.2500"):
        assert f"<td>{number}</td>" in audit._repr_html_()
    assert "s.e." not in page.text
    planned = succeeded(Audit, {**results, "plan": {"planned": True}})
    assert "unplanned" not in planned._repr_html_()


def test_an_audit_against_a_calibration_shows_what_it_found(client: Client, samples: list[Sample]) -> None:
    known: list[Sample] = [{"text": sample["text"], "document": sample["id"]} for sample in samples[20:]]
    tested: list[Sample] = [{"text": sample["text"], "document": f"book {n % 2}"} for n, sample in enumerate(samples[:9])]
    tested.append({"text": "a", "document": "short"})
    calibration = client.wait(client.calibrate(known, methods=["loss"]))
    evidence: Evidence = {"calibration": calibration.id, "decisions": {"fdr": 0.5, "procedure": "bh"}}
    _, audit = (client.wait(client.audit(tested, methods=["loss"], evidence=evidence)) for _ in range(2))
    assert audit.results is not None
    [method], works = audit.methods, audit.results["works"]
    page = Page(audit._repr_html_())
    clusters, resolution = (method["calibration"][name] for name in ("clusters", "resolution"))
    for header in ("known clusters", "smallest possible p-value", "work", "adjusted p-value", "on the list"):
        assert header in page.cells
    assert page.cells[page.cells.index("loss") :][:4] == ["loss", "9", str(clusters), f"{resolution:.4f}"]
    assert [work["document"] for work in works] == ["book 0", "book 1"]
    for work in works:
        numbers = [f"{work[name]:.4f}" for name in ("p_value", "p_value_adjusted")]
        at = page.cells.index(work["document"])
        assert page.cells[at + 1 : at + 4] == [*numbers, "yes" if work["listed"] else "no"]
    listed = audit.results["decisions"]["rejected"]
    assert f"On the list at a false discovery rate of 0.5 (bh), by loss: {listed} of 2 clusters." in page.text
    assert "samples without a score by any method: 1 (too_short)" in page.text
    earlier = audit.results["plan"]["earlier_audits"]
    assert earlier >= 1 and f"earlier audits of the same samples: {earlier} (a hint, no proof: " in page.text
    first = succeeded(Audit, {**audit.results, "plan": {"planned": False, "earlier_audits": 0}})
    assert "earlier audits" not in Page(first._repr_html_()).text


def test_works_of_any_content_and_number_are_shown() -> None:
    works = [{"document": f"{EVIL} {n}", "p_value": 0.5, "listed": True} for n in range(201)]
    excluded = {"label": EVIL, "code": EVIL, "samples": 3}
    results: dict[str, Any] = {"methods": [], "works": works, "samples": {"exclusions": [excluded]}}
    page = Page(succeeded(Audit, results)._repr_html_())
    assert "script" not in {tag for tag, _ in page.elements}
    assert f"{EVIL} 199" in page.cells and f"{EVIL} 200" not in page.cells
    assert "The first 200 of 201 works." in page.text and f"by {EVIL}: 3 ({EVIL})" in page.text
    strange = {"methods": [], "works": [7], "samples": {"exclusions": 7}, "decisions": 7, "plan": 7}
    assert Page(succeeded(Audit, strange)._repr_html_()).text == "Audit a: succeeded, 1 of 1"


def test_jobs_without_results_show_how_they_stand() -> None:
    running = Audit({"id": EVIL, "status": "running", "progress": {"done": 3, "total": 9}})
    assert running._repr_html_() == f"<div><p>Audit {html.escape(EVIL)}: running, 3 of 9</p></div>"
    listed = Finetune({"id": "a", "status": "succeeded", "progress": {"done": 9, "total": 9}})
    assert Page(listed._repr_html_()).text == "Finetune a: succeeded, 9 of 9"
    # A list has the labels of the methods of a calibration and none of their sizes.
    known = Calibration({**listed.answer, "methods": [{"label": "loss"}, {"label": "zlib"}]})
    assert known._repr_html_() == "<div><p>Calibration a: succeeded, 9 of 9</p></div>"
    error = {"detail": f"the model {EVIL}"}
    failed = Finetune({"id": "a", "status": "failed", "progress": {"done": 3, "total": 9}, "error": error})
    assert Page(failed._repr_html_()).text == f"Finetune a: failed, 3 of 9: the model {EVIL}"


def test_other_results_are_tables() -> None:
    methods = [{"label": EVIL, "size": 20, "clusters": 20, "resolution": 0.0476}]
    calibration = succeeded(Calibration, {}, methods=methods)
    method = {"label": EVIL, "tested": 3, "p_value": None, "error": f"none {EVIL}"}
    test = succeeded(pdr_audit.Test, {"verdict": VERDICT, "methods": [method], "warnings": []})
    summary: dict[str, Any] = {
        "texts": {"texts": 1, "windows": 4, "coverage": None},
        "reading": f"Given 8 tokens {EVIL}",
    }
    memorization = succeeded(Memorization, {"summary": summary})
    steps = [{"step": step, "loss": loss} for step, loss in ((1, 2.5), (2, 1.25))]
    finetune = succeeded(Finetune, {"adapter": EVIL, "steps": steps})
    difference = {"label": EVIL, "scored": 9, "auroc_a": 0.5, "auroc_b": 0.75, "delta": 0.25, "interval": [0.1, 0.4]}
    pair = {"a": {"id": EVIL}, "b": {"id": "b"}, "samples": {"paired": 9}}
    compared = Comparison({**pair, "methods": [difference]})
    shown: list[tuple[Job | Comparison, list[str]]] = [
        (calibration, ["20", "0.0476"]),
        (test, [VERDICT["sentence"], "3", "error", f"none {EVIL}"]),
        (memorization, [summary["reading"]]),
        (finetune, ["2", "2.500", "1.250"]),
        (compared, ["0.100 to 0.400"]),
    ]
    for value, texts in shown:
        page = Page(value._repr_html_())
        assert "script" not in {tag for tag, _ in page.elements}
        assert all(text in page.text for text in [EVIL, *texts])
    assert memorization.sentence == summary["reading"] and calibration.sentence is None


def test_a_comparison_names_the_level_of_its_intervals_and_that_nothing_is_adjusted(
    client: Client, samples: list[Sample]
) -> None:
    audits = [client.wait(client.audit(samples, methods=["loss"], model=model)) for model in ("demo", "demo-reference")]
    compared = client.compare(*audits)
    assert compared["loss"]["interval"] and compared["loss"]["p_value"]
    shown = Page(compared._repr_html_()).text
    assert "95 % interval" in shown and "p-value (not adjusted)" in shown
    assert "not adjusted for the number of methods" in shown
    unlabelled = {**compared.answer, "methods": [{"label": "loss", "scored": 40, "mean_difference": 0.5}]}
    shown = Page(Comparison(unlabelled)._repr_html_()).text
    assert "0.500" in shown and "adjusted" not in shown and "interval" not in shown
    at_another = {**compared.answer, "bootstrap": {"confidence": 0.9}}
    assert "90 % interval" in Page(Comparison(at_another)._repr_html_()).text


def test_a_report_that_is_refused_is_a_problem() -> None:
    problem = {"title": "t", "status": 406, "detail": "none of these"}
    client = Client(transport=httpx.MockTransport(lambda _: httpx.Response(406, json=problem)))
    for report in (lambda: client.report("a"), lambda: client.report("a", "json"), lambda: client.report("a", "dsse")):
        with pytest.raises(pdr_audit.ProblemError, match="406: none of these"):
            report()
