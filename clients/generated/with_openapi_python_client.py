"""Scores a text and runs an audit with what openapi-python-client makes of the document; prints a loss and an AUROC."""

import json
import sys
import time

from pdr_audit_client import Client
from pdr_audit_client.api.audits import get_audit, submit_audit
from pdr_audit_client.api.scoring import score
from pdr_audit_client.models import (
    Audit,
    AuditRequest,
    MethodObject,
    Metrics,
    Problem,
    SampleRequest,
    ScoreRequest,
    ScoreResponse,
)

url, text, samples = sys.argv[1], sys.argv[2], json.load(open(sys.argv[3]))
client = Client(base_url=url, raise_on_unexpected_status=True)

request = ScoreRequest(inputs=text, methods=["loss", MethodObject(name="min_k", k=0.2)])
scores = score.sync(client=client, body=request)
assert isinstance(scores, ScoreResponse), scores
refusal = score.sync(client=client, body=ScoreRequest(inputs=text, methods=["nope"]))
assert isinstance(refusal, Problem) and refusal.status == 422, refusal

rows = [SampleRequest.from_dict(sample) for sample in samples]
request = AuditRequest(samples=rows, methods=["loss"], metrics=Metrics(fpr_targets=[0.05]))
audit = submit_audit.sync(client=client, body=request)
while isinstance(audit, Audit) and audit.status in ("queued", "running"):
    time.sleep(0.2)
    audit = get_audit.sync(audit.id, client=client)
assert isinstance(audit, Audit) and audit.status == "succeeded" and audit.results, audit
print(scores.results[0].scores["loss"], audit.results.methods[0].auroc)
