//! A kind of job in one file and one line: its routes, its part of the OpenAPI document, its command and its events.

use crate::common::app::App;
use pdr_audit::api::{self, ApiState, JobBody, JobContext, JobDocument, JobKinds, JobResource, Problem};
use pdr_audit::app::start_scorer;
use pdr_audit::config::Settings;
use pdr_audit::datasets::{Sample, SampleTotals, SubmittedSamples};
use pdr_audit::jobs::{JobError, JobFailure, JobKind, JobRequest, JobRun, JobSubject, JobSummary, Submission};
use pdr_audit::store::{DatasetRow, JobOutput};
use pdr_audit::{app, cli};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;
use utoipa::ToSchema;

/// The kinds of the program, and this one.
fn kinds() -> JobKinds {
    JobKinds::all().with::<Echo>()
}

/// A kind of job that reports its text.
struct Echo;

#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct EchoRequest {
    text: String,
    /// Milliseconds before the end.
    #[serde(default)]
    pause: u64,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct EchoSubject;

#[derive(Serialize, ToSchema)]
struct EchoDetails {}

#[derive(Debug, Deserialize, Serialize, ToSchema)]
struct EchoProgress {
    done: usize,
    total: usize,
}

#[derive(Serialize, ToSchema)]
struct EchoReport {
    text: String,
}

impl JobSubject for EchoSubject {
    fn summary(&self) -> JobSummary<'_> {
        JobSummary { total: 1, ..JobSummary::default() }
    }
}

impl JobRequest for EchoRequest {
    type Subject = EchoSubject;

    fn subject(_: &Submission<Self>, _: &SampleTotals) -> EchoSubject {
        EchoSubject
    }

    fn weight(&self, _: &SampleTotals) -> Result<usize, JobError> {
        Ok(1)
    }
}

impl JobKind for Echo {
    const NAME: &'static str = "echo";
    const MOST_RUNNING: usize = 2;
    const MOST_KEPT: usize = 100;
    const COUNTER: &'static str = "pdr_audit_echoes_total";
    type Request = EchoRequest;

    async fn run(&self, job: JobRun<'_, EchoRequest>) -> Result<JobOutput, JobFailure> {
        tokio::time::sleep(Duration::from_millis(job.request.pause)).await;
        job.local.set_done(1);
        let report = serde_json::to_string(&EchoReport { text: job.request.text.clone() }).unwrap();
        Ok(JobOutput { report, ..JobOutput::default() })
    }
}

impl JobBody for EchoRequest {
    type Request = Self;

    fn dataset(&self) -> Option<&str> {
        None
    }

    fn check(self, _: &ApiState, _: Option<DatasetRow>) -> Result<Submission<Self>, Problem> {
        let samples = SubmittedSamples::Inline(vec![Sample { text: self.text.clone(), ..Sample::default() }]);
        Ok(Submission { request: self, name: None, samples, idempotency_key: None, timeout: None })
    }
}

impl JobResource for Echo {
    const DOCUMENT: JobDocument = JobDocument {
        segment: "echoes",
        about: "A text in, the same text out",
        operation: "echo",
        list: "echoes",
        schema: "Echo",
        has_results: true,
        serves_requests: false,
        description: "Reports its text.",
        example: r#"{ "text": "hello" }"#,
        progress: "`done` and `total`",
        cancellation: None,
        deletion: None,
    };
    type Body = EchoRequest;
    type Details = EchoDetails;
    type Progress = EchoProgress;
    type Report = EchoReport;

    fn with(_: &JobContext) -> Self {
        Self
    }

    fn details(EchoSubject: EchoSubject, _: Option<&str>) -> Result<EchoDetails, Problem> {
        Ok(EchoDetails {})
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_of_job_has_routes_and_events() {
    let settings = Settings { models: Vec::new(), ..Settings::default() };
    let scorer = start_scorer(&settings, app::hub()).unwrap();
    let service = App::with_kinds(&settings, scorer, &kinds()).await;
    let job = service.post("/v1/echoes", &json!({ "text": "hello", "pause": 300 })).await.json();
    let path = format!("/v1/echoes/{}", job["id"].as_str().unwrap());
    assert_eq!((&job["results"], &job["progress"]["total"]), (&Value::Null, &json!(1)), "{job}");
    let events = service.get(&format!("{path}/events")).await;
    let events = events.text();
    assert!(events.contains("event: progress") && events.ends_with("{\"status\":\"succeeded\"}\n\n"), "{events}");
    assert_eq!(service.get(&path).await.ok()["results"], json!({ "text": "hello" }));
    assert_eq!(service.get("/v1/echoes").await.ok()["echoes"].as_array().unwrap().len(), 1);
    let refused = service.post("/v1/echoes", &json!({ "txt": "hello" })).await;
    assert_eq!(refused.status, 422);
    let cancelled = service.post("/v1/echoes", &json!({ "text": "", "pause": 60_000 })).await.json();
    let path = format!("/v1/echoes/{}", cancelled["id"].as_str().unwrap());
    assert_eq!(service.post(&format!("{path}/cancel"), &json!(null)).await.json()["status"], "cancelled");
    assert_eq!(service.delete(&path).await.status, 204);
}

#[test]
fn a_kind_of_job_is_in_the_document() {
    let document = serde_json::to_value(api::document(&kinds())).unwrap();
    for (path, method) in [
        ("/v1/echoes", "post"),
        ("/v1/echoes", "get"),
        ("/v1/echoes/{id}", "get"),
        ("/v1/echoes/{id}", "delete"),
        ("/v1/echoes/{id}/cancel", "post"),
        ("/v1/echoes/{id}/events", "get"),
    ] {
        assert_eq!(document["paths"][path][method]["tags"], json!(["echoes"]), "{method} {path}");
    }
    let tag = json!({ "name": "echoes", "description": "A text in, the same text out" });
    assert!(document["tags"].as_array().unwrap().contains(&tag));
    for schema in ["EchoRequest", "Echo", "EchoSummary", "EchoList", "EchoReport"] {
        assert!(document["components"]["schemas"][schema].is_object(), "{schema}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_of_job_is_a_command() {
    let kinds = kinds();
    let matches = cli::command(&kinds).try_get_matches_from(["pdr-audit", "echo", "--request", "echo.json"]).unwrap();
    let (document, file) = cli::requested_job(&matches, &kinds).unwrap();
    assert_eq!((document.segment, file.to_str()), ("echoes", Some("echo.json")));
    assert!(cli::command(&kinds).try_get_matches_from(["pdr-audit", "echo"]).is_err());
    let settings = Settings { models: Vec::new(), ..Settings::default() };
    let results = cli::run_job(&kinds, document, br#"{ "text": "hello" }"#.to_vec(), &settings).await.unwrap();
    assert_eq!(results, json!({ "text": "hello" }));
    let error = cli::run_job(&kinds, document, br#"{ "txt": "hello" }"#.to_vec(), &settings).await.unwrap_err();
    assert!(error.to_string().contains("txt"), "{error}");
}
