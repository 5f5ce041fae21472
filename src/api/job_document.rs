//! Names and texts of a kind of job.

use uuid::Uuid;

/// Names and texts of a kind of job in the OpenAPI document.
pub struct JobDocument {
    /// Segment of its paths below `/v1`, which is its tag and the end of its list's operation id as well.
    pub segment: &'static str,
    /// End of the other operation ids, such as that of `submit_audit`.
    pub operation: &'static str,
    /// Property of a list that has the jobs.
    pub list: &'static str,
    /// Name of the schema of a job, which begins the names of the schemas of a summary and a list.
    pub schema: &'static str,
    /// Whether a job has its report as `results`. Otherwise the details tell it, and a list shows jobs as they are shown alone.
    pub has_results: bool,
    /// What a job does, after the summary of the submission.
    pub description: &'static str,
    /// Body of a submission, as JSON.
    pub example: &'static str,
    /// What `progress` counts.
    pub progress: &'static str,
    /// What happens when a job is cancelled, where it is more than for others.
    pub cancellation: Option<&'static str>,
    /// What happens when a job is deleted, where it is more than for others.
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
