//! Names and texts of a kind of job.

use uuid::Uuid;

/// Names and texts of a kind of job in the OpenAPI document and on the command line.
#[derive(Clone, Copy)]
pub struct JobDocument {
    /// Segment of its paths below `/v1`, which is its tag and the end of its list's operation id as well.
    pub segment: &'static str,
    /// Description of the tag.
    pub about: &'static str,
    /// End of the other operation ids, such as that of `submit_audit`, and name of its command.
    pub operation: &'static str,
    /// Property of a list that has the jobs.
    pub list: &'static str,
    /// Name of the schema of a job, which begins the names of the schemas of a summary and a list.
    pub schema: &'static str,
    /// True if a job has its report as `results`. Otherwise the report is part of the details, and lists and single jobs share a schema.
    pub has_results: bool,
    /// True if later requests need its jobs, which must then be in a store that lasts.
    pub serves_requests: bool,
    /// Description of the submission.
    pub description: &'static str,
    /// Body of a submission, as JSON.
    pub example: &'static str,
    /// Fields of a `progress` event, as in "`done` and `total` texts".
    pub progress: &'static str,
    /// Description of the cancellation, if it needs one.
    pub cancellation: Option<&'static str>,
    /// Description of the deletion, if it needs one.
    pub deletion: Option<&'static str>,
}

impl JobDocument {
    /// Path of the jobs.
    pub fn path(&self) -> String {
        format!("/v1/{}", self.segment)
    }

    /// Path of a job.
    pub fn location(&self, id: Uuid) -> String {
        format!("/v1/{}/{id}", self.segment)
    }

    /// Name of the schema of a list.
    pub fn list_schema(&self) -> String {
        format!("{}List", self.schema)
    }

    /// Name of the schema of a job in a list.
    pub fn summary_schema(&self) -> String {
        if self.has_results { format!("{}Summary", self.schema) } else { self.schema.to_owned() }
    }
}
