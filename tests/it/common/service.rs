//! The program as a process of its own, on a store that outlives it.

use crate::common::client::{Answer, Client, send};
use reqwest::Method;
use serde_json::Value;
use sqlx::{AnyPool, AssertSqlSafe, Executor};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// The longest that a job takes.
pub const PATIENCE: Duration = Duration::from_secs(600);
/// Short, so that another process takes over soon.
const LEASE: &str = "5s";

/// Guards the message about skipped tests, which is printed once.
static SAID: Once = Once::new();

/// The program, serving from a store.
pub struct Service {
    pub process: Child,
    pub client: Client,
}

impl Service {
    /// Serving from this store, with statistics on disk.
    pub fn start(store: &str, statistics: &Path) -> Self {
        Self::start_in(store, statistics, "f32")
    }

    /// Computing in this type.
    pub fn start_in(store: &str, statistics: &Path, dtype: &str) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_pdr-audit"))
            .args(["serve", "--port", "0"])
            .env("PDR_AUDIT__STORE__URL", store)
            .env("PDR_AUDIT__STORE__LEASE", LEASE)
            .env("PDR_AUDIT__ENGINE__DTYPE", dtype)
            .env("PDR_AUDIT__ENGINE__DISK_CACHE", statistics)
            .env("PDR_AUDIT__SERVER__DRAIN_DELAY", "0")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(process.stderr.take().unwrap()).lines().map(Result::unwrap);
        let line = log.find(|line| line.contains("listening on http://")).expect("the service starts");
        let address = line.split("http://").nth(1).unwrap().split(',').next().unwrap().to_owned();
        // Read on, so that the service never waits for its log to be read.
        std::thread::spawn(move || log.for_each(drop));
        Self { process, client: Client::new(address.parse().unwrap()) }
    }

    pub fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Submits an audit.
    pub async fn submit(&self, body: &Value, key: Option<&str>) -> Answer {
        let request = self.client.request(Method::POST, "/v1/audits").json(body);
        let answer = send(key.into_iter().fold(request, |request, key| request.header("idempotency-key", key))).await;
        assert!([200, 202].contains(&answer.status), "{}", answer.text());
        answer
    }

    pub async fn audit(&self, id: &str) -> Value {
        self.client.get(&format!("/v1/audits/{id}")).await.ok()
    }

    /// The audit once it has ended.
    pub async fn ended(&self, id: &str) -> Value {
        self.ended_at(&format!("/v1/audits/{id}")).await
    }

    /// The job at this path, once it has ended.
    pub async fn ended_at(&self, path: &str) -> Value {
        let begun = Instant::now();
        loop {
            let job = self.client.get(path).await.ok();
            if !["queued", "running"].contains(&job["status"].as_str().unwrap()) {
                return job;
            }
            assert!(begun.elapsed() < PATIENCE, "{job}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub async fn scores(&self, id: &str) -> String {
        self.client.get(&format!("/v1/audits/{id}/scores")).await.text().to_owned()
    }
}

/// The URL of an empty store of each kind that outlives a process, in this directory.
pub async fn places(directory: &Path) -> Vec<String> {
    let file = format!("sqlite://{}/{}.db", directory.display(), Uuid::new_v4());
    let Ok(url) = std::env::var("PDR_AUDIT_TEST_POSTGRES") else {
        // Past the harness, which would show it only where a test fails.
        SAID.call_once(|| {
            let _ = writeln!(std::io::stderr(), "SKIPPED on PostgreSQL: PDR_AUDIT_TEST_POSTGRES is not set");
        });
        return vec![file];
    };
    vec![file, postgres(&url).await]
}

async fn postgres(url: &str) -> String {
    sqlx::any::install_default_drivers();
    let pool = AnyPool::connect(url).await.unwrap();
    let name = format!("test_{}", Uuid::new_v4().simple());
    pool.execute(AssertSqlSafe(format!("CREATE SCHEMA {name}"))).await.unwrap();
    pool.close().await;
    format!("{url}?options[search_path]={name}")
}
