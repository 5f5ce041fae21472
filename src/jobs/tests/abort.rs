//! Jobs that end every process that runs them, over restarts of the process.

use super::{FakeKind, SOON, request};
use crate::config::{StoreSettings, StoreUrl};
use crate::jobs::{FailureKind, Jobs};
use crate::store::{JobStatus, Store};
use futures::FutureExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Set in a process that runs the jobs of this file.
const FILE: &str = "PDR_AUDIT_TEST_ABORTING_STORE";

/// Ends the process where the model is `killer`. The process that only submits runs nothing.
async fn work(model: String) {
    if std::env::var_os(FILE).is_none() {
        futures::future::pending::<()>().await;
    }
    if model == "killer" {
        // Those that run beside it have the time to end, else they would count as having ended the process as well.
        tokio::time::sleep(Duration::from_millis(500)).await;
        std::process::abort();
    }
}

async fn jobs(file: &Path) -> Jobs<FakeKind> {
    let url = StoreUrl::Sqlite(file.to_owned());
    let store = Store::open(Some(&url)).await.unwrap();
    let settings = StoreSettings { url: Some(url), lease: Duration::from_secs(1), ..StoreSettings::default() };
    Jobs::start(store, settings, FakeKind::Running(|model| work(model).boxed()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_ends_every_process_fails_after_three_and_the_others_finish() {
    if let Some(file) = std::env::var_os(FILE) {
        // Runs what is there, until it is aborted or nothing is left.
        let jobs = jobs(Path::new(&file)).await;
        while jobs.store().unfinished("audit", "").await.unwrap().0 > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        return jobs.shutdown().await;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.db");
    let submitting = jobs(&file).await;
    let mut ids = Vec::new();
    for model in ["good", "killer", "other"] {
        ids.push(submitting.submit(request(model), &Default::default()).await.unwrap().id);
    }
    submitting.shutdown().await;
    submitting.store().close().await;
    drop(submitting);

    let run = || {
        let test = "jobs::tests::abort::a_job_that_ends_every_process_fails_after_three_and_the_others_finish";
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", test]).env(FILE, &file).output().unwrap().status
    };
    let ends: Vec<bool> = (0..4).map(|_| run().success()).collect();
    assert_eq!(
        ends,
        [false, false, false, true],
        "three processes are aborted, and the fourth has nothing left to fear"
    );

    let after = jobs(&file).await;
    let killer = after.wait(ids[1], SOON).await.unwrap();
    assert_eq!((killer.status, killer.failure.unwrap().kind), (JobStatus::Failed, FailureKind::Abandoned));
    for id in [ids[0], ids[2]] {
        assert_eq!(after.wait(id, SOON).await.unwrap().failure.unwrap().kind, FailureKind::ModelChanged);
    }
}
