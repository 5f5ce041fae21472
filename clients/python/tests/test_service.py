"""Against the real program with the demo model."""

import asyncio
import dataclasses
import gzip
import hashlib
import json
import os
import uuid
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pandas
import pytest

import pdr_audit
from pdr_audit import AsyncClient, Calibration, Client, Finetune, Job
from pdr_audit.types import ComparedTexts, Evidence, Sample

TEXT = "The brass clock struck nine in Fallowfield."


def test_texts_are_scored(client: Client) -> None:
    scores = client.score([TEXT, {"text": "A", "id": "short"}], methods=["loss", {"name": "min_k", "k": 0.3}], model="demo")
    assert scores.labels == ["loss", "min_k(k=0.3)"]
    assert scores[0]["scores"]["loss"] == pytest.approx(-7.1344, abs=1e-3)
    frame = scores.to_frame()
    assert list(frame.columns) == ["id", "scored_tokens", "truncated", "loss", "min_k(k=0.3)"]
    assert frame.loc[0, "loss"] == scores[0]["scores"]["loss"]
    assert frame.loc[1, "id"] == "short"
    assert len(list(scores)) == len(scores) == 2


def test_one_text_and_one_method_need_no_list(client: Client) -> None:
    scores = client.score(TEXT, methods="loss", tokens=True)
    assert scores.labels == ["loss"]
    added = [token["contributions"].get("loss", 0.0) for token in scores[0]["tokens"]]
    assert sum(added) == pytest.approx(scores[0]["scores"]["loss"])


def test_an_audit_is_waited_for_and_read(client: Client, samples: list[Sample]) -> None:
    seen: list[tuple[int, int]] = []
    submitted = client.audit(samples, methods=["loss"], metrics={"fpr_targets": [0.05]}, name="a test")
    audit = client.wait(submitted, progress=lambda done, total: seen.append((done, total)), timeout=60)
    assert audit.status == "succeeded" and seen[-1] == (40, 40)
    assert 0 < (audit["loss"]["auroc"] or 0) < 1
    assert audit.warnings
    frame = audit.to_frame()
    assert frame.loc["loss", "auroc"] == audit["loss"]["auroc"]
    assert "tpr_at_0.05_fpr" in frame.columns
    scores = client.audit_scores(audit)
    assert len(scores) == 40
    by_label = scores.to_frame().groupby("label")["loss"].mean()
    assert set(by_label.index) == {0, 1}
    listed = next(client.audits(status="succeeded", model="demo"))
    assert (listed.id, listed.answer["name"]) == (audit.id, "a test")
    client.delete(audit)
    with pytest.raises(pdr_audit.NotFound):
        client.get_audit(audit)


def test_scores_of_samples_have_all_that_is_known_of_them(client: Client, samples: list[Sample]) -> None:
    parts: list[Sample] = [{**sample, "document": f"d{place % 30}"} for place, sample in enumerate(samples)]
    evidence: Evidence = {"prior": 0.5, "control": "demo-reference"}
    scores = client.audit_scores(client.wait(client.audit(parts, methods=["loss", "zlib"], evidence=evidence)))
    frame = scores.to_frame()
    found = ["loss", "zlib", "posterior", "control_score_loss", "control_score_zlib"]
    assert list(frame.columns) == ["id", "label", "document", "scored_tokens", "truncated", *found]
    assert list(frame["document"]) == [sample["document"] for sample in parts]
    assert list(frame["control_score_zlib"]) == [sample["control_scores"]["zlib"] for sample in scores]
    assert frame["posterior"].between(0, 1).all()


def test_samples_may_be_a_frame(client: Client, samples: list[Sample]) -> None:
    frame = pandas.DataFrame(samples)
    frame["group"] = [None if index % 2 else "even" for index in range(len(frame))]
    of_frame = client.wait(client.audit(frame, methods=["loss"]))
    of_list = client.wait(client.audit(samples, methods=["loss"]))
    assert of_frame["loss"]["auroc"] == of_list["loss"]["auroc"]


def test_lists_are_read_page_by_page(client: Client, samples: list[Sample]) -> None:
    submitted = [client.audit(samples[:1] + samples[-1:], methods=["loss"]).id for _ in range(3)]
    for id in submitted:
        client.wait(id)
    listed = [audit.id for audit in client.audits()]
    assert listed[:3] == submitted[::-1]


def lines(samples: list[Sample]) -> bytes:
    return b"".join(json.dumps(sample).encode() + b"\n" for sample in samples)


def test_a_dataset_is_uploaded_audited_and_deleted(client: Client, samples: list[Sample], tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl.gz"
    path.write_bytes(gzip.compress(lines(samples)))
    dataset = client.upload(path)
    assert (dataset.samples, dataset.members, dataset.non_members) == (40, 20, 20)
    assert client.get_dataset(dataset.id).answer == dataset.answer
    assert dataset.id in [listed.id for listed in client.datasets()]
    audit = client.wait(client.audit(dataset, methods=["loss"]))
    assert audit["loss"]["auroc"] == client.wait(client.audit(samples, methods=["loss"]))["loss"]["auroc"]
    assert client.audit(dataset.id, methods=["loss"]).answer["dataset"] == dataset.id
    for listed in client.audits():
        if not listed.is_final:
            client.wait(listed)
    client.delete_dataset(dataset)
    with pytest.raises(pdr_audit.NotFound):
        client.get_dataset(dataset)


def test_whatever_holds_the_same_samples_is_the_same_dataset(client: Client, samples: list[Sample], url: str) -> None:
    frame = pandas.DataFrame(samples)
    csv = frame.rename(columns={"text": "body"}).to_csv(index=False).encode()
    content = lines(samples)
    pieces: Iterator[bytes] = iter([content[:1000], content[1000:]])

    async def uploaded() -> list[str]:
        async def arriving() -> AsyncIterator[bytes]:
            for piece in (content[:777], content[777:]):
                yield piece

        async with AsyncClient(url) as service:
            sources = (arriving(), content, samples, os.environ["PDR_AUDIT_SAMPLES"])
            return [(await service.upload(source)).id for source in sources]

    ids = [client.upload(source).id for source in (content, pieces, samples, (sample for sample in samples), frame)]
    ids.append(client.upload(csv, media_type="text/csv", text_column="body").id)
    *same, whole = asyncio.run(uploaded())
    assert len({*ids, *same}) == 1 and whole == client.upload(os.environ["PDR_AUDIT_SAMPLES"]).id
    assert client.upload(samples, words=2).id not in ids


def test_a_dataset_with_a_fault_is_refused_with_its_place(client: Client) -> None:
    with pytest.raises(pdr_audit.InvalidRequest, match="line 2: .*label"):
        client.upload(b'{"text": "a", "label": 1}\n{"text": "b", "label": 7}\n')
    with pytest.raises(FileNotFoundError):
        client.upload("nowhere.jsonl")
    with pytest.raises(ValueError, match="samples.bin: .*media_type"):
        client.upload("samples.bin")


def test_other_columns_come_back_with_the_scores(client: Client, samples: list[Sample]) -> None:
    rows = [{**sample, "page": page} for page, sample in enumerate(samples)]
    kept, left = client.upload(rows), client.upload(rows, keep_columns=False)
    assert (kept.answer["columns"], left.answer["columns"]) == (["page"], [])
    audit = client.wait(client.audit(kept, methods=["loss"], timeout_seconds=60))
    assert [sample["columns"]["page"] for sample in client.audit_scores(audit)] == list(range(40))


def test_an_audit_is_submitted_once(client: Client, samples: list[Sample]) -> None:
    key = str(uuid.uuid4())
    first, again = (client.audit(samples, methods=["loss"], idempotency_key=key) for _ in range(2))
    assert first.id == again.id
    with pytest.raises(pdr_audit.InvalidRequest, match="Idempotency-Key"):
        client.audit(samples, methods=["zlib"], idempotency_key=key)


def test_an_audit_is_followed(client: Client, samples: list[Sample], url: str) -> None:
    submitted = client.audit(samples, methods=["loss", "min_k"])
    events = list(client.events(submitted))
    ids = [event.id for event in events]
    assert ids == sorted(set(ids))
    assert (events[-1].name, events[-1].data) == ("status", {"status": "succeeded"})
    progress = [event.data for event in events if event.name == "progress"][-1]
    assert (progress["done"], progress["total"], progress["forecast"]["texts"]) == (40, 40, 40)

    async def follow() -> list[pdr_audit.AuditEvent]:
        async with AsyncClient(url) as service:
            return [event async for event in service.events(submitted)]

    assert asyncio.run(follow())[-1] == events[-1]
    with pytest.raises(pdr_audit.NotFound):
        list(client.events("nope"))


def test_two_audits_are_compared(client: Client, samples: list[Sample], url: str) -> None:
    a = client.wait(client.audit(samples, methods=["loss"], model="demo-reference"))
    b = client.wait(client.audit(samples[:15] + samples[20:], methods=["loss"], model="demo"))
    compared = client.compare(a, b.id)
    assert compared.answer["samples"]["paired"] == 35
    assert compared["loss"]["delta"] == compared["loss"]["auroc_b"] - compared["loss"]["auroc_a"]
    assert compared.to_frame().loc["loss", "delta"] == compared["loss"]["delta"]

    async def compare() -> pdr_audit.Comparison:
        async with AsyncClient(url) as service:
            return await service.compare(a, b)

    assert asyncio.run(compare()).answer == compared.answer


def test_a_calibration_gives_p_values(client: Client, samples: list[Sample], url: str) -> None:
    calibration = client.wait(client.calibrate(samples[20:], methods=["loss"], name="known"))
    [method] = calibration.answer["methods"]
    assert (method["label"], method["size"], calibration.answer["name"]) == ("loss", 20, "known")
    listed = next(client.jobs(Calibration))
    assert listed._repr_html_() == f"<div><p>Calibration {calibration.id}: succeeded, 20 of 20</p></div>"
    assert "<td>0.0476</td>" in calibration._repr_html_()
    scores = client.score([TEXT, samples[20]["text"]], methods=["loss"], calibration=calibration)
    assert method["resolution"] <= scores[0]["p_values"]["loss"] <= 1
    assert scores.answer["calibration"]["overlap"] == 1
    frame = scores.to_frame()
    assert list(frame["p_value_loss"]) == [result["p_values"]["loss"] for result in scores]

    async def score() -> pdr_audit.Scores:
        async with AsyncClient(url) as service:
            return await service.score(TEXT, methods=["loss"], calibration=calibration.id)

    assert asyncio.run(score())[0]["p_values"] == scores[0]["p_values"]
    unlabelled: list[Sample] = [{"text": sample["text"]} for sample in samples[:20]]
    evidence: Evidence = {"calibration": calibration.id, "decisions": {"fdr": 0.2}}
    audit = client.wait(client.audit(unlabelled, methods=["loss"], evidence=evidence))
    tested = client.audit_scores(audit)
    frame = tested.to_frame()
    columns = ["scored_tokens", "truncated", "loss", "p_value_loss", "p_value_adjusted", "flagged"]
    assert list(frame.columns) == columns and len(frame) == 20
    for name in ("p_value_adjusted", "flagged"):
        assert list(frame[name]) == [sample.get(name) for sample in tested]
    assert list(frame["p_value_loss"]) == [sample["p_values"]["loss"] for sample in tested]
    with pytest.raises(pdr_audit.InvalidRequest, match="member"):
        client.calibrate(samples, methods=["loss"])


TESTS: list[ComparedTexts] = [
    {"kind": "dataset", "suspects": [TEXT, "A brass bell rang."], "held_out": ["The rain fell."], "control": None},
    {"kind": "paired", "documents": [{"public": f"{TEXT} {n}", "private": [f"Nobody heard {n} bells."]} for n in "ab"]},
    {"kind": "rank", "canaries": [{"text": TEXT, "twins": ["The tin clock struck four in Fallowfield."]}]},
    {"kind": "order", "shards": [["One came.", "Two went.", "Three slept."]], "shuffles": 5, "seed": 7},
]


@pytest.mark.parametrize("texts", TESTS, ids=lambda texts: texts["kind"])
def test_a_test_needs_no_threshold(client: Client, texts: ComparedTexts) -> None:
    test = client.wait(client.test(texts, methods=["loss", "zlib"], primary="zlib", commitment="0" * 64))
    assert test.results is not None and test.results["kind"] == texts["kind"]
    assert [method["label"] for method in test.results["methods"]] == ["loss", "zlib"]
    assert all(0 < method["p_value"] <= 1 for method in test.results["methods"])
    verdict = test.results["verdict"]
    assert (verdict["primary"], verdict["state"]) == ("zlib", "inconclusive")
    assert test.results["commitment"]["matches"] is False


def test_an_audit_keeps_to_its_plan(client: Client, samples: list[Sample], url: str) -> None:
    evidence: Evidence = {"control": None, "primary": "loss"}
    plan = client.plan(samples, methods=["loss"], evidence=evidence, metrics={"fpr_targets": [0.1]})
    assert plan.id == f"sha256:{hashlib.sha256(plan.content.encode()).hexdigest()}"
    assert plan.fields["model"] == "demo" and repr(plan) == f"<Plan {plan.id} {plan.created}>"

    async def again() -> pdr_audit.Plan:
        async with AsyncClient(url) as service:
            return await service.plan(samples, methods=["loss"], evidence=evidence, metrics={"fpr_targets": [0.1]})

    assert asyncio.run(again()).answer == plan.answer
    submitted = client.audit(samples, methods=["loss"], evidence=evidence, metrics={"fpr_targets": [0.1]}, plan=plan)
    results = client.wait(submitted).results
    assert results is not None and results["plan"]["planned"] and results["plan"]["id"] == plan.id
    with pytest.raises(pdr_audit.ProblemError, match="methods"):
        client.audit(samples, methods=["zlib"], plan=plan.id)
    with pytest.raises(pdr_audit.InvalidRequest, match="label"):
        client.plan([{"text": "a", "label": 7}], methods=["loss"])


def test_a_maximum_cost_is_checked(client: Client, samples: list[Sample]) -> None:
    # What runs in the service costs nothing.
    plan = client.plan(samples, methods=["loss"], max_cost=0)
    assert plan.served is None
    assert client.wait(client.audit(samples, methods=["loss"], plan=plan, max_cost=0)).status == "succeeded"
    with pytest.raises(pdr_audit.InvalidRequest, match="it must be 0 or more"):
        client.audit(samples, methods=["loss"], max_cost=-1)


@pytest.fixture
def canaries(program: Callable[..., str], tmp_path: Path) -> pdr_audit.Canaries:
    program("canary", "make", "--count", "6", "--twins", "3", "--out", tmp_path / "canaries")
    return pdr_audit.read(tmp_path / "canaries", pdr_audit.Canaries)


def test_canaries_are_opened(client: Client, canaries: pdr_audit.Canaries, program: Callable[..., str], url: str) -> None:
    test = client.wait(client.open_canaries(canaries, model="demo"))
    assert test.results is not None and test.results["commitment"]["matches"] is True
    assert test.results["commitment"]["given"] == canaries.commitment
    assert test.sentence == test.results["verdict"]["sentence"]
    changed = dataclasses.replace(canaries, canaries=canaries.canaries[:5])

    async def opened() -> pdr_audit.Test:
        async with AsyncClient(url) as service:
            return await service.wait(await service.open_canaries(changed, control="demo-reference"))

    unlike = asyncio.run(opened())
    assert unlike.results is not None and unlike.results["commitment"]["matches"] is False
    assert "control" in unlike.results["verdict"]
    secret = dataclasses.replace(canaries, commitment=None)
    with pytest.raises(ValueError, match="no commitment"):
        client.open_canaries(secret)
    again = client.wait(client.open_canaries(secret, commitment=canaries.commitment))
    assert again.results is not None and again.results["methods"] == test.results["methods"]


BOOK = "\n\n".join(f"The clock of house {number} struck nine, and nobody in the long street heard it." for number in range(9))


def document_files(folder: Path) -> list[Path]:
    """The same book in each kind of document."""
    page = "".join(f"<p>{paragraph}</p>" for paragraph in BOOK.split("\n\n"))
    contents = {"a.txt": BOOK, "b.md": f"# Clocks\n\n{BOOK}", "c.html": f"<html><body>{page}</body></html>"}
    for name, content in contents.items():
        (folder / name).write_text(content)
    container = '<rootfiles><rootfile full-path="p.opf" media-type="application/oebps-package+xml"/></rootfiles>'
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><manifest>'
        '<item id="p" href="p.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="p"/></spine></package>'
    )
    with zipfile.ZipFile(folder / "d.epub", "w") as book:
        book.writestr("mimetype", "application/epub+zip")
        book.writestr(
            "META-INF/container.xml",
            f'<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0">{container}</container>',
        )
        book.writestr("p.opf", package)
        book.writestr("p.xhtml", f'<html xmlns="http://www.w3.org/1999/xhtml"><body>{page}</body></html>')
    with zipfile.ZipFile(folder / "e.zip", "w") as archive:
        archive.writestr("shelf/a.txt", BOOK)
    (folder / "f.txt.gz").write_bytes(gzip.compress(BOOK.encode()))
    return sorted(folder.iterdir())


def scored_documents(client: Client, dataset: pdr_audit.Dataset) -> set[str]:
    audit = client.wait(client.audit(dataset, methods=["loss"]))
    return {str(sample.get("document")) for sample in client.audit_scores(audit)}


def test_documents_are_cut_into_passages(client: Client, tmp_path: Path) -> None:
    for path in document_files(tmp_path):
        dataset = client.upload(path, cut={"words": 16, "at": "sentence"})
        cut = dataset.answer["cut"]
        assert (cut["documents"], dataset.samples >= 9) == (1, True), path
        name = {"e.zip": "shelf/a.txt", "f.txt.gz": "f.txt"}.get(path.name, path.name)
        assert scored_documents(client, dataset) == {name}
    by_default = client.upload(tmp_path / "a.txt")
    assert 0 < by_default.samples < 9
    given = client.upload(BOOK.encode(), media_type="text/plain", name="given.txt", cut=16)
    assert scored_documents(client, given) == {"given.txt"}
    overlapping = client.upload(BOOK.encode(), media_type="text/plain", cut={"words": 16, "overlap": 8, "at": "word"})
    assert overlapping.samples > given.samples
    with pytest.raises(pdr_audit.InvalidRequest, match="overlap"):
        client.upload(tmp_path / "a.txt", cut={"words": 16, "overlap": 16})
    (tmp_path / "not.epub").write_bytes(b"PK\x03\x04 is no book")
    with pytest.raises(pdr_audit.ProblemError):
        client.upload(tmp_path / "not.epub")
    with pytest.raises(ValueError, match="book.pdf: the name ends in none of"):
        client.upload("book.pdf")
    with pytest.raises(ValueError, match="is a folder; upload_documents takes it"):
        client.upload(tmp_path)


def test_several_documents_are_one_dataset(client: Client, tmp_path: Path, url: str) -> None:
    for name in ("shelf/one.txt", "shelf/deep/two.txt", "three.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(BOOK.replace("clock", Path(name).stem))
    (tmp_path / "shelf/picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    paths = [tmp_path / "shelf", tmp_path / "three.txt"]
    dataset = client.upload_documents(paths, cut=16)
    assert dataset.answer["cut"]["documents"] == 3
    [skipped] = dataset.answer["cut"]["skipped"]
    assert skipped.startswith("picture.png")
    names = {"one.txt", "deep/two.txt", "three.txt"}
    assert scored_documents(client, dataset) == names

    async def uploaded() -> str:
        async with AsyncClient(url) as service:
            return (await service.upload_documents(paths, cut=16)).id

    assert asyncio.run(uploaded()) == dataset.id
    texts: dict[str, str | bytes] = {name: BOOK.replace("clock", Path(name).stem) for name in names}
    by_name = client.upload_documents(texts, cut=16)
    assert (by_name.samples, scored_documents(client, by_name)) == (dataset.samples, names)
    with pytest.raises(ValueError, match="three.txt: another document is called three.txt"):
        client.upload_documents([tmp_path / "three.txt", tmp_path / "three.txt"])
    with pytest.raises(ValueError, match="there are no documents"):
        client.upload_documents([])
    with pytest.raises(FileNotFoundError):
        client.upload_documents(tmp_path / "nowhere.txt")


def test_texts_of_jobs_are_cut(client: Client, samples: list[Sample]) -> None:
    audit = client.wait(client.audit(samples, methods=["loss"], cut=16))
    assert len(client.audit_scores(audit)) > 40
    whole, cut = (client.plan(samples, methods=["loss"], cut=cut).id for cut in (None, 16))
    assert whole != cut
    calibration = client.wait(client.calibrate(samples[20:], methods=["loss"], cut={"words": 16, "at": "word"}))
    assert calibration.answer["texts"] > 20


def test_memorization_is_measured_beside_a_control(client: Client, samples: list[Sample]) -> None:
    submitted = client.measure_memorization(
        [{"text": samples[0]["text"], "id": 7}], control=samples[20]["text"], prefix=8, suffix=4, stride=4
    )
    results = client.wait(submitted).results
    assert results is not None and results["texts"][0]["id"] == 7 and results["texts"][0]["windows"]
    assert len(results["control"]) == results["summary"]["control"]["texts"] == 1
    windows = client.memorization_map(submitted)
    assert len(windows) == sum(len(text["windows"]) for text in results["texts"] + results["control"])
    assert windows[0]["id"] == 7 and windows[0] | results["texts"][0]["windows"][0] == windows[0]
    separate = client.measure_memorization(
        samples[0]["text"], prefix=8, suffix=4, passes="separate", run_text=True, continuation={"tokens": 9}
    )
    results = client.wait(separate).results
    assert results is not None and results["texts"][0]["continuation"]["tokens"] == 9
    assert results is not None and results["texts"][0]["longest_run"]["text"] in samples[0]["text"]
    dataset = client.upload(samples[20:22])
    assert client.wait(client.measure_memorization(dataset)).answer["dataset"] == dataset.id


def test_an_adapter_is_tuned_used_and_deleted(client: Client, samples: list[Sample]) -> None:
    name = f"unseen-{uuid.uuid4()}"
    finetune = client.wait(
        client.finetune(samples[20:], name=name, lora={"rank": 2}, optimizer={"epochs": 1, "max_length": 16}, seed=1)
    )
    assert finetune.results is not None and finetune.results["adapter"] == f"demo:{name}"
    assert len(finetune.results["steps"]) == finetune.progress["total"] == 2
    tuned = {"name": "fsd", "adapter": name, "score": {"name": "loss"}}
    assert len(client.score(TEXT, methods=tuned)[0]["scores"]) == 1
    with pytest.raises(pdr_audit.Conflict, match=name):
        client.finetune(samples[20:], name=name)
    client.delete_adapter("demo", name)
    with pytest.raises(pdr_audit.NotFound):
        client.delete_adapter("demo", name)


def test_jobs_of_every_kind_are_alike(client: Client, samples: list[Sample], url: str) -> None:
    def submissions(service: Client) -> list[Job]:
        name, known = str(uuid.uuid4()), samples[20:]
        return [
            service.audit(samples, methods=["loss"], idempotency_key=f"{name}-1"),
            service.calibrate(known, methods=["loss"], idempotency_key=f"{name}-2"),
            service.test(TESTS[2], methods=["loss"], idempotency_key=f"{name}-3"),
            service.measure_memorization(TEXT, prefix=2, suffix=2, idempotency_key=f"{name}-4"),
            service.finetune(known, name=name, optimizer={"epochs": 1}, idempotency_key=f"{name}-5"),
        ]

    async def over(job: Job) -> list[str]:
        async with AsyncClient(url) as service:
            ended = await service.wait(job)
            assert [event async for event in service.events(job)][-1].data == {"status": "succeeded"}
            assert (await service.get(type(job), job.id)).answer == ended.answer
            return [listed.id async for listed in service.jobs(type(job), status="succeeded", model="demo")]

    for job in submissions(client):
        assert list(client.events(job))[-1].data == {"status": "succeeded"}
        ended = client.wait(job, timeout=60)
        assert type(ended) is type(job) and ended.id == job.id
        assert client.get(type(job), job.id).answer == ended.answer
        assert job.id == next(client.jobs(type(job), status="succeeded")).id == asyncio.run(over(job))[0]
        with pytest.raises(pdr_audit.Conflict):
            client.cancel(job)
        client.delete(job)
        with pytest.raises(pdr_audit.NotFound):
            client.get(type(job), job)
        if isinstance(job, Finetune):
            client.delete_adapter("demo", job.answer["name"])


def test_a_job_is_submitted_once_and_cancelled(client: Client, samples: list[Sample]) -> None:
    key = str(uuid.uuid4())
    first, again = (
        client.finetune(samples[20:], name=key, optimizer={"epochs": 100}, idempotency_key=key) for _ in range(2)
    )
    assert first.id == again.id
    with pytest.raises(pdr_audit.InvalidRequest, match="Idempotency-Key"):
        client.finetune(samples[20:], name=key, idempotency_key=key)
    assert isinstance(client.cancel(first), Finetune)
    with pytest.raises(pdr_audit.JobFailed, match=f"finetune {first.id} cancelled"):
        client.wait(first)


def test_faults_are_pointed_at(client: Client) -> None:
    with pytest.raises(pdr_audit.InvalidRequest) as caught:
        client.score(TEXT, methods=["nope", {"name": "min_k", "k": 1.5}])
    assert [fault["pointer"] for fault in caught.value.errors] == ["/methods/0", "/methods/1/k"]
    assert "/methods/1/k: k is 1.5" in str(caught.value)
    with pytest.raises(pdr_audit.NotFound, match="not configured"):
        client.score(TEXT, model="nope")
    with pytest.raises(pdr_audit.TooLarge, match="limits.inputs"):
        client.score(["a b"] * 10_001)


def test_models_and_methods_are_listed(client: Client) -> None:
    assert [model["id"] for model in client.models()] == ["demo", "demo-reference"]
    assert "min_k" in [method["name"] for method in client.methods()["methods"]]


def test_asyncio_gives_the_same(client: Client, url: str, samples: list[Sample]) -> None:
    async def ask() -> tuple[list[float], float | None, str]:
        async with AsyncClient(url) as service:
            several = await asyncio.gather(*(service.score(TEXT, methods=["loss"]) for _ in range(3)))
            audit = await service.wait(await service.audit(samples, methods=["loss"]))
            scores = await service.audit_scores(audit)
            first = [listed.id async for listed in service.audits()][0]
            assert len(scores) == 40
            return [scores[0]["scores"]["loss"] for scores in several], audit["loss"]["auroc"], first

    losses, auroc, first = asyncio.run(ask())
    assert losses == [client.score(TEXT, methods=["loss"])[0]["scores"]["loss"]] * 3
    assert auroc == client.get_audit(first)["loss"]["auroc"]
