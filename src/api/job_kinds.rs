//! The kinds of job that a service has.

use super::client_state::RouterState;
use super::job_document::JobDocument;
use super::job_resource::{JobContext, JobResource};
use super::job_routes::job_routes;
use super::routed_jobs::{RoutedJobs, RunningJobs};
use crate::audits::{AuditKind, CalibrationKind, TestJob};
use crate::config::StoreSettings;
use crate::finetunes::FinetuneKind;
use crate::jobs::Jobs;
use crate::memorization::MemorizationKind;
use crate::store::Store;
use utoipa_axum::router::OpenApiRouter;

/// The kinds of job that a service has, in the order of the OpenAPI document's tags.
#[derive(Clone, Default)]
pub struct JobKinds(Vec<RegisteredKind>);

/// A kind of job.
#[derive(Clone, Copy)]
pub struct RegisteredKind {
    /// Its names and texts.
    pub document: JobDocument,
    /// Its routes under `/v1`.
    pub(super) routes: fn() -> OpenApiRouter<RouterState>,
    start: fn(&JobContext, Store, StoreSettings) -> Box<dyn RunningJobs>,
}

impl JobKinds {
    /// The kinds of the program.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
            .with::<AuditKind>()
            .with::<CalibrationKind>()
            .with::<TestJob>()
            .with::<FinetuneKind>()
            .with::<MemorizationKind>()
    }

    /// These kinds and another one.
    #[must_use]
    pub fn with<K: JobResource>(mut self) -> Self {
        self.0.push(RegisteredKind {
            document: K::DOCUMENT,
            routes: job_routes::<K>,
            start: |context, store, settings| Box::new(Jobs::start(store, settings, K::with(context))),
        });
        self
    }

    /// Each kind.
    pub fn iter(&self) -> impl Iterator<Item = &RegisteredKind> {
        self.0.iter()
    }

    /// Runs the jobs of all kinds that are in the store, and those that are submitted, from now on.
    #[must_use]
    pub fn start(&self, context: &JobContext, store: &Store, settings: &StoreSettings) -> RoutedJobs {
        let running = self.iter().map(|kind| (kind.start)(context, store.clone(), settings.clone())).collect();
        RoutedJobs::new(running, store.clone())
    }
}
