"""The same with the models that datamodel-code-generator makes of the document, over httpx."""

import json
import sys
import time

import httpx
from models import Audit, AuditRequest, MethodObject, Metrics, SampleRequest, ScoreRequest, ScoreResponse, Status
from pydantic import BaseModel

url, text, samples = sys.argv[1], sys.argv[2], json.load(open(sys.argv[3]))


def post(path: str, body: BaseModel) -> str:
    json_body = body.model_dump_json(exclude_unset=True)
    answer = httpx.post(url + path, content=json_body, headers={"content-type": "application/json"})
    return answer.raise_for_status().text


request = ScoreRequest(inputs=text, methods=["loss", MethodObject(name="min_k", k=0.2)])
scores = ScoreResponse.model_validate_json(post("/v1/score", request))

rows = [SampleRequest.model_validate(sample) for sample in samples]
request = AuditRequest(samples=rows, methods=["loss"], metrics=Metrics(fpr_targets=[0.05]))
audit = Audit.model_validate_json(post("/v1/audits", request))
while audit.status in (Status.queued, Status.running):
    time.sleep(0.2)
    audit = Audit.model_validate_json(httpx.get(f"{url}/v1/audits/{audit.id}").raise_for_status().text)
assert audit.status == Status.succeeded and audit.results, audit
print(scores.results[0].scores["loss"], audit.results.methods[0].auroc)
