//! The verdict of a report in the shape that in-toto is about to give evaluations: `eval-result` 0.1 as proposed in
//! <https://github.com/in-toto/attestation/pull/575>, so that tools for that shape read it.

use crate::envelope::Envelope;
use crate::keys::SigningKey;
use crate::report::{DATASET, RunTimes, subject};
use crate::statement::{Statement, Subject};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Type of the predicate.
pub const EVAL_RESULT_PREDICATE: &str = "https://in-toto.io/attestation/eval-result/v0.1";

/// Media type of a signed report.
const DSSE: &str = "application/vnd.dsse.envelope+json";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EvalResult {
    evaluator: BTreeMap<&'static str, String>,
    evaluated_at: String,
    suite: NamedVersion,
    claims: Vec<Claim>,
    sample_size: u64,
    model: Subject,
    dataset: Subject,
    /// `self_attested`: the signer's own claim.
    assurance_level: &'static str,
    /// `public-model`: the subject is the model by its digest.
    subject_profile: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pre_registration: Option<PreRegistration>,
    evidence: [Evidence; 1],
    harness: NamedVersion,
}

#[derive(Serialize)]
struct NamedVersion {
    name: String,
    version: &'static str,
}

/// A number that was compared with a threshold; the thresholds are those of the verdict.
#[derive(Serialize)]
struct Claim {
    metric: String,
    comparator: &'static str,
    /// A decimal number as text.
    threshold: String,
    passed: bool,
}

/// The plan that the audit keeps to.
#[derive(Serialize)]
struct PreRegistration {
    alg: &'static str,
    value: String,
}

/// The signed report, by the bytes of its envelope.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Evidence {
    #[serde(flatten)]
    report: Subject,
    media_type: &'static str,
}

/// Signs what the verdict of a report claims, beside the signed report, given as the bytes of its envelope. `None` for a report that
/// has no verdict with a p-value, names no weights, or does not say when it was made.
///
/// # Errors
/// If the statement cannot be written as JSON.
pub fn sign_eval_result(
    kind: &str,
    run: &RunTimes,
    report: &Value,
    envelope: &[u8],
    key: &SigningKey,
) -> serde_json::Result<Option<Envelope>> {
    let Some(result) = eval_result(kind, run, report, envelope, key) else { return Ok(None) };
    let statement = Statement::new(vec![result.model.clone()], EVAL_RESULT_PREDICATE, result);
    Ok(Some(Envelope::sign(&serde_json::to_vec(&statement)?, key)))
}

fn eval_result(kind: &str, run: &RunTimes, report: &Value, envelope: &[u8], key: &SigningKey) -> Option<EvalResult> {
    let provenance = &report["provenance"];
    let version = env!("CARGO_PKG_VERSION");
    let plan = report["plan"]["id"].as_str().and_then(|id| id.strip_prefix("sha256:"));
    Some(EvalResult {
        evaluator: BTreeMap::from([("id", format!("urn:pdr-audit:key:{}", key.public().id()))]),
        evaluated_at: run.finished_at.clone()?,
        suite: NamedVersion { name: format!("pdr-audit {kind}"), version },
        claims: claims(&report["verdict"])?,
        sample_size: report["samples"]["total"].as_u64()?,
        model: subject(provenance["model"].as_str()?.to_owned(), &provenance["model_digest"])?,
        dataset: subject(DATASET.to_owned(), &provenance["dataset_digest"])?,
        assurance_level: "self_attested",
        subject_profile: "public-model",
        pre_registration: plan.map(|value| PreRegistration { alg: "sha256", value: value.to_owned() }),
        evidence: [Evidence {
            report: Subject::new("report", hex::encode(Sha256::digest(envelope))),
            media_type: DSSE,
        }],
        harness: NamedVersion { name: "pdr-audit".to_owned(), version },
    })
}

/// The comparisons that a verdict rests on: the p-value, that of the difference to the control, and the bound on what tells the lists
/// apart without the model. `None` without a p-value.
fn claims(verdict: &Value) -> Option<Vec<Claim>> {
    let (method, level) = (verdict["primary"].as_str()?, verdict["level"].as_f64()?);
    let at_most = |metric: String, value: f64, threshold: f64| Claim {
        metric,
        comparator: "<=",
        threshold: threshold.to_string(),
        passed: value <= threshold,
    };
    let mut claims = vec![at_most(format!("p_value of {method}"), verdict["effect"]["p_value"].as_f64()?, level)];
    let control = verdict["control"]["p_value"].as_f64();
    claims.extend(control.map(|value| at_most(format!("p_value of {method} against the control"), value, level)));
    let comparability = &verdict["comparability"];
    let bound = comparability["upper_bound"].as_f64().zip(comparability["margin"].as_f64());
    claims.extend(bound.map(|(value, margin)| {
        at_most("upper bound of the AUROC of a classifier without the model".to_owned(), value, 0.5 + margin)
    }));
    Some(claims)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_fields_are_those_of_the_proposal() {
        let digest = |digit: &str| digit.repeat(64);
        let report = json!({
            "samples": { "total": 400 },
            "verdict": {
                "primary": "loss", "level": 0.01, "effect": { "p_value": 0.0001 }, "control": { "p_value": 0.02 },
                "comparability": { "upper_bound": 0.53, "margin": 0.15 },
            },
            "plan": { "planned": true, "id": format!("sha256:{}", digest("d")) },
            "provenance": {
                "model": "m", "model_digest": format!("sha256:{}", digest("a")), "dataset_digest": format!("sha256:{}", digest("b")),
            },
        });
        let key = SigningKey::random().unwrap();
        let run = RunTimes { finished_at: Some("2026-01-01T00:00:00Z".to_owned()), ..RunTimes::default() };
        let envelope = sign_eval_result("audit", &run, &report, b"envelope", &key).unwrap().unwrap();
        assert!(envelope.is_signed_by(&key.public()));
        let statement: Value = serde_json::from_slice(&envelope.statement().unwrap()).unwrap();
        let model = json!({ "name": "m", "digest": { "sha256": digest("a") } });
        assert_eq!(statement["subject"], json!([model]));
        let claim = |metric: &str, threshold: &str, passed| json!({ "metric": metric, "comparator": "<=", "threshold": threshold, "passed": passed });
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            statement["predicate"],
            json!({
                "evaluator": { "id": format!("urn:pdr-audit:key:{}", key.public().id()) },
                "evaluatedAt": "2026-01-01T00:00:00Z",
                "suite": { "name": "pdr-audit audit", "version": version },
                "claims": [
                    claim("p_value of loss", "0.01", true),
                    claim("p_value of loss against the control", "0.01", false),
                    claim("upper bound of the AUROC of a classifier without the model", "0.65", true),
                ],
                "sampleSize": 400,
                "model": model,
                "dataset": { "name": "dataset", "digest": { "sha256": digest("b") } },
                "assuranceLevel": "self_attested",
                "subjectProfile": "public-model",
                "preRegistration": { "alg": "sha256", "value": digest("d") },
                "evidence": [{
                    "name": "report",
                    "digest": { "sha256": hex::encode(Sha256::digest(b"envelope")) },
                    "mediaType": DSSE,
                }],
                "harness": { "name": "pdr-audit", "version": version },
            })
        );
        let mut without = report.clone();
        without["verdict"] = Value::Null;
        assert!(sign_eval_result("audit", &run, &without, b"", &key).unwrap().is_none());
        assert!(sign_eval_result("audit", &RunTimes::default(), &report, b"", &key).unwrap().is_none());
    }
}
