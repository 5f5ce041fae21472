//! Audits that end every process that runs them, over restarts of the process.

use super::{SOON, request};
use crate::audits::error::AuditFailure;
use crate::audits::jobs::{AuditKind, AuditWork, Audits};
use crate::config::{StoreSettings, StoreUrl};
use crate::jobs::FailureKind;
use crate::store::{JobStatus, Store};
use futures::FutureExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Set in a process that runs the audits of this file.
const FILE: &str = "PDR_AUDIT_TEST_ABORTING_STORE";

/// The audits of a store; those of the model `killer` end the process.
async fn audits(file: &Path) -> Audits {
    let url = StoreUrl::Sqlite(file.to_owned());
    let store = Store::open(Some(&url)).await.unwrap();
    let settings = StoreSettings { url: Some(url), lease: Duration::from_secs(1), ..StoreSettings::default() };
    let is_child = std::env::var_os(FILE).is_some();
    let kind = AuditKind::new(move |AuditWork { request, .. }| {
        async move {
            if !is_child {
                // The process that only submits runs nothing.
                futures::future::pending::<()>().await;
            }
            if request.model == "killer" {
                // Those that run beside it have the time to end, else they would count as having ended the process as well.
                tokio::time::sleep(Duration::from_millis(500)).await;
                std::process::abort();
            }
            Err(AuditFailure::ModelChanged(request.model.clone()))
        }
        .boxed()
    });
    Audits::start(store, settings, kind)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_that_ends_every_process_fails_after_three_and_the_others_finish() {
    if let Some(file) = std::env::var_os(FILE) {
        // Runs what is there, until it is aborted or nothing is left.
        let audits = audits(Path::new(&file)).await;
        while audits.store().unfinished("audit", "").await.unwrap().0 > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        return audits.shutdown().await;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.db");
    let submitting = audits(&file).await;
    let mut ids = Vec::new();
    for model in ["good", "killer", "other"] {
        ids.push(submitting.submit(request(model)).await.unwrap().id);
    }
    submitting.shutdown().await;
    submitting.store().close().await;
    drop(submitting);

    let run = || {
        let test =
            "audits::jobs::tests::abort::an_audit_that_ends_every_process_fails_after_three_and_the_others_finish";
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", test]).env(FILE, &file).output().unwrap().status
    };
    let ends: Vec<bool> = (0..4).map(|_| run().success()).collect();
    assert_eq!(
        ends,
        [false, false, false, true],
        "three processes are aborted, and the fourth has nothing left to fear"
    );

    let after = audits(&file).await;
    let killer = after.wait(ids[1], SOON).await.unwrap();
    assert_eq!((killer.status, killer.failure.unwrap().kind), (JobStatus::Failed, FailureKind::Abandoned));
    for id in [ids[0], ids[2]] {
        assert_eq!(after.wait(id, SOON).await.unwrap().failure.unwrap().kind, FailureKind::ModelChanged);
    }
}
