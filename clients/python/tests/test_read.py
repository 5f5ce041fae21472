"""Files and folders that the program writes, and ones that are at fault."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pdr_audit
from pdr_audit import (
    Audit,
    AuditRun,
    AuditScores,
    Calibration,
    Canaries,
    Client,
    Comparison,
    Envelope,
    Finetune,
    InvalidFile,
    Memorization,
    Plan,
    Scores,
    read,
)
from pdr_audit.types import Sample

Program = Callable[..., str]


@pytest.fixture
def copied(run_folder: Path, tmp_path: Path) -> Path:
    """A folder of an audit that a test may damage."""
    return Path(shutil.copytree(run_folder, tmp_path / "copied"))


def written(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def test_the_folder_of_an_audit_is_read(client: Client, run_folder: Path, samples: list[Sample]) -> None:
    run = read(run_folder, AuditRun)
    served = client.wait(client.audit(samples, methods=["loss", "min_k_plus_plus"]))
    assert run.results is not None and served.results is not None
    for same in ("samples", "methods", "verdict", "warnings"):
        assert run.results[same] == served.results[same]
    assert (run.sentence, run["loss"]["auroc"]) == (served.sentence, served["loss"]["auroc"])
    assert run.to_frame().equals(served.to_frame())
    assert run.scores.to_frame().equals(client.audit_scores(served).to_frame())
    assert run.request["arguments"][0] == "audit"
    assert run.page.html == (run_folder / "report.html").read_text()
    names = [figure.name for figure in run.figures]
    assert names == sorted(file.name for file in (run_folder / "figures").iterdir()) and len(names) >= 4
    assert repr(run) == f"<AuditRun {run_folder} succeeded 40/40>"
    assert isinstance(read(str(run_folder / "report.json")), Audit)


def test_the_figures_of_a_folder_are_shown_beside_its_sentence(run_folder: Path) -> None:
    run = read(run_folder, AuditRun)
    page = run._repr_html_()
    assert run.results is not None and run.results["verdict"]["sentence"] == run.sentence
    assert page.count('<img src="data:image/svg+xml;base64,') == len(run.figures)
    assert "<svg" not in page and "<script" not in page


def test_what_was_read_from_a_file_is_no_job_of_a_service(client: Client, run_folder: Path) -> None:
    run = read(run_folder, AuditRun)
    calls: list[Callable[[Any], object]] = [
        client.audit_scores,
        client.report,
        client.wait,
        client.cancel,
        client.delete,
        client.get_audit,
    ]
    for call in calls:
        with pytest.raises(ValueError, match="was read from a file and has no id"):
            call(run)


def test_reports_of_every_kind_are_read(
    client: Client, program: Program, samples: list[Sample], sample_file: Path, tmp_path: Path
) -> None:
    canary = written(tmp_path / "canaries.jsonl", {"text": "The brass clock.", "twins": ["The tin clock."]})
    text = written(tmp_path / "text.txt", samples[0]["text"])
    commands: dict[type[pdr_audit.Job], list[str | Path]] = {
        Audit: ["audit", sample_file, "--methods", "loss"],
        pdr_audit.Test: ["test", "rank", canary, "--methods", "loss"],
        Memorization: ["memorization", text, "--prefix", "8", "--suffix", "8"],
    }
    for kind, command in commands.items():
        printed = program(*command, "--model", "demo", "--format", "json")
        job = read(written(tmp_path / f"{kind.__name__}.json", printed), kind)
        assert (type(job), job.id, job.is_final, job.results) == (kind, "", True, json.loads(printed))
        assert job.source == tmp_path / f"{kind.__name__}.json" and job._repr_html_().startswith("<div>")
    with pytest.raises(InvalidFile, match=r"Test\.json: it is a Test, not an Audit"):
        read(tmp_path / "Test.json", Audit)

    # These are kept in a store.
    settings = written(tmp_path / "settings.toml", f'[store]\nurl = "sqlite://{tmp_path}/store.db"\n')

    def kept(command: str, **fields: Any) -> Path:
        request = written(tmp_path / "request.json", {"model": "demo", "samples": samples[20:], **fields})
        return written(tmp_path / f"{command}.json", program(command, "--request", request, "--config", settings))

    calibration = read(kept("calibration", methods=["loss"]), Calibration)
    assert calibration.id and calibration.answer["methods"][0]["size"] == 20
    finetune = read(kept("finetune", name="unseen", optimizer={"epochs": 1}), Finetune)
    assert finetune.results is not None and len(finetune.results["steps"]) == finetune.progress["total"] > 0
    served = client.wait(client.calibrate(samples[20:], methods=["loss"]))
    assert read(written(tmp_path / "c.json", client.report(served, "json")), Calibration).progress["total"] == 20


def test_answers_of_the_service_are_read(client: Client, samples: list[Sample], tmp_path: Path) -> None:
    audits = [client.wait(client.audit(samples, methods=["loss"], model=model)) for model in ("demo", "demo-reference")]
    saved = read(written(tmp_path / "audit.json", audits[0].answer), Audit)
    assert saved.id == audits[0].id and client.get_audit(saved).answer == audits[0].answer
    compared = client.compare(*audits)
    assert read(written(tmp_path / "comparison.json", compared.answer), Comparison).answer == compared.answer
    for status in ("running", "failed"):
        answer = {**audits[0].answer, "status": status, "results": None}
        with pytest.raises(InvalidFile, match=f"the job is {status}; it has "):
            read(written(tmp_path / "audit.json", answer))


def test_signed_reports_are_read(tmp_path: Path) -> None:
    envelope = {"payloadType": "application/vnd.in-toto+json", "payload": "e30=", "signatures": []}
    assert read(written(tmp_path / "signed.json", envelope), Envelope).statement == {}
    faults: list[dict[str, Any]] = [{"payload": "e"}, {"payload": None}, {"signatures": {}}]
    for fault in faults:
        with pytest.raises(InvalidFile, match="signed.json: .*payload"):
            read(written(tmp_path / "signed.json", envelope | fault))


def test_the_signed_reports_of_a_folder_are_read(
    program: Program, signing_key: Path, sample_file: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    program("audit", sample_file, "--model", "demo", "--methods", "loss", "--signing-key", signing_key, "--out", folder)
    run, envelope = read(folder, AuditRun), read(folder / "report.dsse.json", Envelope)
    assert envelope.payload_type == "application/vnd.in-toto+json" and len(envelope.signatures) == 1
    assert envelope.statement["predicate"]["report"] == run.results
    result = read(folder / "eval-result.dsse.json", Envelope).statement
    assert result["predicateType"].startswith("https://in-toto.io/attestation/eval-result/")
    with pytest.raises(InvalidFile, match=r"report\.dsse\.json: it is an Envelope, not an Audit"):
        read(folder / "report.dsse.json", Audit)


def test_scores_are_read(program: Program, run_folder: Path, sample_file: Path, tmp_path: Path) -> None:
    assert len(read(run_folder / "scores.ndjson", AuditScores)) == 40
    printed = program("score", sample_file, "--model", "demo", "--methods", "loss,zlib")
    scores = read(written(tmp_path / "scores.jsonl", printed), Scores)
    assert (scores.labels, len(scores)) == (["loss", "zlib"], 40)
    assert list(scores.to_frame().columns)[-2:] == ["loss", "zlib"]


def test_plans_and_canaries_are_read(program: Program, sample_file: Path, tmp_path: Path) -> None:
    program("plan", sample_file, "--model", "demo", "--methods", "loss", "--out", tmp_path / "plan.json")
    plan = read(tmp_path / "plan.json", Plan)
    assert plan.fields["model"] == "demo"
    written(tmp_path / "changed.json", {**plan.answer, "content": plan.content.replace("demo", "other")})
    with pytest.raises(InvalidFile, match="another SHA-256"):
        read(tmp_path / "changed.json")
    program("canary", "make", "--count", "5", "--twins", "3", "--out", tmp_path / "canaries")
    canaries = read(tmp_path / "canaries", Canaries)
    published = [json.loads(line)["text"] for line in (tmp_path / "canaries/publish.jsonl").open()]
    assert canaries.published == published and len(canaries) == 5
    assert canaries.commitment == (tmp_path / "canaries/commitment").read_text().strip()
    assert canaries.nonce not in repr(canaries) and published[0] not in repr(canaries)
    private = json.loads((tmp_path / "canaries/private.json").read_text())
    faults: list[dict[str, Any]] = [
        {"canaries": []},
        {"nonce": 1},
        {"canaries": [{"text": "a", "twins": []}]},
        {"method": None},
    ]
    for fault in faults:
        with pytest.raises(InvalidFile, match="private.json: "):
            read(written(tmp_path / "private.json", {**private, **fault}))
    assert read(written(tmp_path / "private.json", private), Canaries).commitment is None


def test_a_folder_without_a_report_is_refused(copied: Path, tmp_path: Path) -> None:
    (copied / "report.json").unlink()
    with pytest.raises(InvalidFile, match=f"^{copied}: the audit has not ended; go on with .*--resume {copied}"):
        read(copied)
    (copied / "request.json").unlink()
    with pytest.raises(InvalidFile, match="no folder of an audit or of canaries"):
        read(copied)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nowhere")


def test_files_that_are_cut_off_are_named_with_the_place(copied: Path) -> None:
    whole = (copied / "scores.ndjson").read_bytes()
    for content, fault in (
        (whole[:-200], r"line 40: not JSON, or cut off"),
        (whole[: whole.index(b"\n") + 1], r"it has 1 lines, and the report has 40 samples"),
        (b"[1]\n", r"line 1: not a JSON object"),
        (b"{}\n", r"row 1 has no scores"),
    ):
        (copied / "scores.ndjson").write_bytes(content)
        with pytest.raises(InvalidFile, match=f"scores.ndjson: {fault}") as caught:
            _ = read(copied, AuditRun).scores
        assert caught.value.path == copied / "scores.ndjson"
    (copied / "scores.ndjson").unlink()
    with pytest.raises(FileNotFoundError, match="scores.ndjson"):
        _ = read(copied, AuditRun).scores
    report = (copied / "report.json").read_bytes()
    for content, fault in (
        (report[:500], r"line \d+, column \d+: not JSON, or cut off"),
        (b"", "the file is empty"),
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        (b"[]", "a report is a JSON object"),
        (b"[" * 100_000, "nested too deeply"),
        (b"{}", "no report of pdr-audit is like this"),
        (b'{"windows": {}, "summary": {}}', "it is a Memorization"),
    ):
        (copied / "report.json").write_bytes(content)
        with pytest.raises(InvalidFile, match=f"report.json: .*{fault}"):
            read(copied)


def test_reports_that_cannot_be_shown_are_refused(run_folder: Path, tmp_path: Path) -> None:
    report = json.loads((run_folder / "report.json").read_text())
    job = {"id": "a", "status": "succeeded", "progress": {"done": 1, "total": 1}, "results": report}
    for value, fault in (
        ({**report, "methods": [{"name": "loss"}]}, "/methods/0 has no label"),
        ({**report, "methods": {}}, "`methods` is not a list"),
        ({**report, "warnings": ["a"]}, "`warnings`"),
        ({**report, "verdict": {}}, "`verdict` has no sentence"),
        ({**report, "verdict": {"sentence": "a", "assumptions": [1]}}, "assumptions that are not texts"),
        ({**job, "progress": {}}, "the job has no `id`"),
    ):
        with pytest.raises(InvalidFile, match=f"report.json: .*{fault}"):
            read(written(tmp_path / "report.json", value))
    strange = {
        **report,
        "methods": [{"label": "<b>", "scored": [], "auroc": "x", "control": 7, "bootstrap": {"auroc": 1}}],
    }
    assert "&lt;b&gt;" in read(written(tmp_path / "report.json", strange), Audit)._repr_html_()
