"""Against the real program with the demo model."""

import asyncio

import pandas
import pytest

import pdr_audit
from pdr_audit import AsyncClient, Client
from pdr_audit.types import Sample

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
