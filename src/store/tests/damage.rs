//! Rows that are not what was written.

use super::jobs::new_job;
use super::places::test_stores;
use crate::store::{
    AdapterFiles, AdapterName, DatasetKey, IdempotencyKey, JobEnd, JobOutput, JobQuery, NewJob, Principal, Store,
    StoreError,
};
use mia::texts::sha256_address;
use sha2::{Digest, Sha256};
use sqlx::AssertSqlSafe;
use std::fmt::Debug;
use std::time::Duration;
use uuid::Uuid;

/// The keys of what a store that is [`filled`] holds.
pub(super) struct Filled {
    pub(super) id: String,
    pub(super) dataset: DatasetKey,
    pub(super) job: Uuid,
}

const BLOCKS: usize = 4;

/// Fills a store with a dataset, a job that has succeeded on it with all that a job leaves behind, and a plan.
pub(super) async fn filled(store: &Store) -> Filled {
    let blocks: Vec<String> =
        (0..BLOCKS).map(|block| format!("{{\"text\":\"sample {block}\"}}\n").repeat(300)).collect();
    let id = sha256_address(Sha256::new_with_prefix(blocks.concat()));
    let key = store.begin_dataset("alice", true).await.unwrap();
    for (number, block) in blocks.iter().enumerate() {
        store.add_block(key, number, block).await.unwrap();
    }
    let dataset = store.complete_dataset(key, Some(&id), r#"{"samples":1200}"#).await.unwrap();
    let adapter = Some(AdapterName { model: "demo".to_owned(), name: "a".to_owned() });
    let key = Some(IdempotencyKey { key: "k".to_owned(), digest: "d".to_owned() });
    let (owner, texts) = ("alice".to_owned(), id.clone());
    let job = NewJob { owner, dataset, texts, key, adapter, ..new_job(store, "demo", None).await };
    store.submit(&job).await.unwrap();
    let claimed = store.claim("audit", Duration::from_secs(60), 3, None).await.unwrap().unwrap();
    let end = JobEnd::Succeeded(JobOutput {
        report: r#"{"auroc":0.8125}"#.repeat(700),
        header: r#"["loss"]"#.to_owned(),
        scores: (0..BLOCKS).map(|block| format!("[-{block}.125]\n").repeat(500)).collect(),
        adapter: Some(AdapterFiles {
            base_digest: "sha256:b".to_owned(),
            files: vec![("config".to_owned(), b"{}".to_vec()), ("tensors".to_owned(), vec![7; 1_200_000])],
        }),
        ..JobOutput::default()
    });
    store.finish(job.id, claimed.claim, 1_200, None, &end).await.unwrap().unwrap();
    store.add_plan(&Principal::new("alice", false), "sha256:p", r#"{"level":0.01}"#).await.unwrap();
    Filled { id, dataset, job: job.id }
}

/// Everything that the functions of a store say of what is in it, in words.
pub(super) async fn answers(
    store: &Store,
    Filled { id, dataset, job }: &Filled,
) -> Vec<(String, Result<String, StoreError>)> {
    fn words<T: Debug>(answer: Result<T, StoreError>) -> Result<String, StoreError> {
        answer.map(|answer| format!("{answer:?}"))
    }
    let alice = Principal::new("alice", false);
    let every = JobQuery { status: None, model: None, after: None, limit: 100 };
    let mut answers = vec![
        ("dataset".to_owned(), words(store.dataset(&alice, id).await)),
        ("datasets".to_owned(), words(store.datasets(&alice, None, 9).await.map(|page| page.rows))),
        ("dataset of the job".to_owned(), words(store.dataset_of(*job).await)),
        ("job".to_owned(), words(store.job("audit", *job).await)),
        ("jobs".to_owned(), words(store.jobs("audit", &alice, &every).await.map(|page| page.rows))),
        ("report".to_owned(), words(store.report(*job).await)),
        ("header".to_owned(), words(store.score_header(*job).await)),
        ("plan".to_owned(), words(store.plan(&alice, "sha256:p").await)),
        ("adapters".to_owned(), words(store.adapters().await)),
        ("files".to_owned(), words(store.adapter_files(*job).await)),
    ];
    for block in 0..=BLOCKS {
        answers.push((format!("samples {block}"), words(store.sample_block(*dataset, block).await)));
        answers.push((format!("scores {block}"), words(store.score_block(*job, block).await)));
    }
    answers
}

#[tokio::test]
async fn each_row_that_is_altered_is_named_and_not_believed() {
    for place in test_stores().await {
        let (store, name) = (&place.store, place.name);
        let filled = filled(store).await;
        let sound = answers(store, &filled).await;
        assert!(sound.iter().all(|(_, answer)| answer.is_ok()), "{name}: {sound:?}");
        let (dataset, job) = (format!("dataset {}", filled.dataset), format!("job {}", filled.job));
        // Each with what undoes it.
        let (block_2, scores) =
            (format!("block 2 of 4 of the {dataset} is missing"), format!("of the scores of the {job}"));
        let changes = [
            (
                "samples",
                "content",
                "REPLACE(content, 'e 1', 'e 9')",
                "REPLACE(content, 'e 9', 'e 1')",
                "samples 1",
                &*format!("block 1 of the {dataset}"),
            ),
            (
                "samples",
                "block",
                "CASE block WHEN 2 THEN 9 ELSE block END",
                "CASE block WHEN 9 THEN 2 ELSE block END",
                "samples 2",
                &*block_2,
            ),
            ("datasets", "description", "'{\"samples\":1300}'", "'{\"samples\":1200}'", "dataset", &*dataset),
            ("datasets", "created_at", "created_at + 1", "created_at - 1", "dataset", &*dataset),
            ("jobs", "request", "'{ }'", "'{}'", "job", &*format!("the {job}")),
            ("jobs", "weight", "weight + 1", "weight - 1", "job", &*format!("the {job}")),
            ("jobs", "done", "done - 1", "done + 1", "job", &*format!("the end of the {job}")),
            ("jobs", "finished_at", "finished_at - 1", "finished_at + 1", "job", &*format!("the end of the {job}")),
            (
                "jobs",
                "texts",
                "'sha256:0'",
                &*format!("'{}'", filled.id),
                "dataset of the job",
                &*format!("the {job} has other texts than its {dataset}"),
            ),
            (
                "results",
                "report",
                "REPLACE(report, '0.81', '0.91')",
                "REPLACE(report, '0.91', '0.81')",
                "report",
                &*format!("the report of the {job}"),
            ),
            ("results", "header", "'[\"zlib\"]'", "'[\"loss\"]'", "header", &*format!("the report of the {job}")),
            ("results", "blocks", "3", "4", "scores 0", &*format!("block 0 {scores}")),
            (
                "scores",
                "content",
                "REPLACE(content, '-3', '-2')",
                "CASE block WHEN 3 THEN REPLACE(content, '-2', '-3') ELSE content END",
                "scores 3",
                &*format!("block 3 {scores}"),
            ),
            (
                "scores",
                "block",
                "CASE block WHEN 3 THEN 9 ELSE block END",
                "CASE block WHEN 9 THEN 3 ELSE block END",
                "scores 3",
                &*format!("block 3 {scores} is missing"),
            ),
            ("plans", "created_at", "created_at - 1", "created_at + 1", "plan", "the plan sha256:p"),
            (
                "adapter_blocks",
                "block",
                "CASE block WHEN 1 THEN 2 ELSE block END",
                "CASE block WHEN 2 THEN 1 ELSE block END",
                "files",
                &*format!("of the adapter {}", filled.job),
            ),
        ];
        let set = async |table, column, value| {
            let statement = format!("UPDATE {table} SET {column} = {value}");
            sqlx::query(AssertSqlSafe(statement)).execute(&store.pool).await.unwrap();
        };
        let (named, base) = (AdapterName { model: "demo".to_owned(), name: "a".to_owned() }, "base_digest");
        set("adapters", base, "'sha256:c'").await;
        assert_eq!(
            (store.adapters().await.unwrap(), store.has_adapter(&named).await.unwrap()),
            (vec![], true),
            "{name}"
        );
        set("adapters", base, "'sha256:b'").await;
        for (table, column, altered, undone, asked, named) in changes {
            set(table, column, altered).await;
            let answer = answers(store, &filled).await.into_iter().find(|(name, _)| name == asked).unwrap().1;
            let error = answer.unwrap_err();
            let is_named = matches!(error, StoreError::Damaged(_)) && error.to_string().contains(named);
            assert!(is_named, "{name}: {table}.{column}: {error}");
            for (asked, answer) in answers(store, &filled).await.into_iter().filter(|(asked, _)| asked == table) {
                assert_eq!(answer.unwrap(), "[]", "{name}: {table}.{column} is in the list of {asked}");
            }
            set(table, column, undone).await;
        }
        assert_eq!(format!("{sound:?}"), format!("{:?}", answers(store, &filled).await), "{name}");
    }
}
