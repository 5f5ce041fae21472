//! `/v1/tests`: tests that need no threshold.

use super::jobs::{JobContext, JobDocument, JobResource};
use super::problem::Problem;
use super::test_request::TestBody;
use crate::audits::{AuditSubject, TestJob, TestKind, TestReport, TestSubject};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A test beside what all jobs have.
#[derive(Serialize, ToSchema)]
pub struct TestDetails {
    kind: TestKind,
    /// Name that the client gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The labels of the methods.
    methods: Vec<String>,
    /// Number of texts to score: of `order`, the orders of all shards.
    texts: usize,
}

/// Progress of a test.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = TestProgress)]
pub struct TestProgress {
    /// Texts done.
    done: usize,
    /// All texts.
    total: usize,
}

impl JobResource for TestJob {
    const DOCUMENT: JobDocument = JobDocument {
        segment: "tests",
        about: "Texts and comparable ones that the model cannot have seen in, a p-value out",
        operation: "test",
        list: "tests",
        schema: "Test",
        has_results: true,
        serves_requests: false,
        description: "Scores all texts behind interactive work and computes the p-value of the result under the null hypothesis of the \
                      test. `dataset` compares suspects with held-out texts of the same source (Mann and Whitney), `di` the same texts by \
                      a combination of all methods that is learnt on one half of them and tested on the other (Welch), `paired` published \
                      texts with private rewrites (permutations of which text was published), `rank` canaries with their twins (the \
                      exact distribution of the sum of ranks), and `order` the published order of the items of shards with random \
                      orders (Student's t).",
        example: r#"{
            "kind": "rank",
            "canaries": [{
                "text": "The brass clock struck nine in Fallowfield.",
                "twins": ["The tin clock struck four in Fallowfield.", "The oak clock struck two in Fallowfield."]
            }],
            "methods": ["loss"]
        }"#,
        progress: "`done` and `total` texts",
        cancellation: None,
        deletion: None,
    };
    type Body = TestBody;
    type Details = TestDetails;
    type Progress = TestProgress;
    type Report = TestReport;

    fn with(context: &JobContext) -> Self {
        Self(context.scorer.clone())
    }

    fn details(TestSubject { kind, scored }: TestSubject, _: Option<&str>) -> Result<TestDetails, Problem> {
        let AuditSubject { name, methods, total, .. } = scored;
        Ok(TestDetails { kind, name, methods, texts: total })
    }
}
