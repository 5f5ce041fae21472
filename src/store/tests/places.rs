//! Empty stores of every kind.

use crate::config::StoreUrl;
use crate::store::Store;
use crate::store::schema::NEWEST;
use sqlx::{AnyPool, AssertSqlSafe, Executor};
use std::io::Write;
use std::sync::Once;
use tempfile::TempDir;
use uuid::Uuid;

/// The URL of a PostgreSQL in which tests may create schemas.
const POSTGRES: &str = "PDR_AUDIT_TEST_POSTGRES";

/// A skipped place is reported once.
static SAID: Once = Once::new();

/// An empty store, which ends with the test.
pub(crate) struct TestStore {
    pub(crate) name: &'static str,
    pub(crate) store: Store,
    /// The URL of it; none in memory.
    pub(crate) url: Option<StoreUrl>,
    pub(super) _directory: Option<TempDir>,
}

/// One store of each kind. See [`test_stores_at`].
pub(crate) async fn test_stores() -> Vec<TestStore> {
    test_stores_at(NEWEST).await
}

/// One store of each kind, with the tables of a version. PostgreSQL is among them where there is one, which the test says otherwise.
pub(crate) async fn test_stores_at(version: i64) -> Vec<TestStore> {
    let directory = tempfile::tempdir().unwrap();
    let file = StoreUrl::Sqlite(directory.path().join("a store.db"));
    let mut stores =
        vec![open("memory", None, None, version).await, open("SQLite", Some(file), Some(directory), version).await];
    match std::env::var(POSTGRES) {
        Ok(url) => stores.push(open("PostgreSQL", Some(StoreUrl::Postgres(schema(&url).await)), None, version).await),
        Err(_) => SAID.call_once(|| {
            // Past the harness, which would show it only where a test fails.
            let _ = writeln!(std::io::stderr(), "SKIPPED on PostgreSQL: {POSTGRES} is not set");
        }),
    }
    stores
}

async fn open(name: &'static str, url: Option<StoreUrl>, directory: Option<TempDir>, version: i64) -> TestStore {
    let store = Store::open_at(url.as_ref(), version).await.unwrap();
    TestStore { name, store, url, _directory: directory }
}

/// The URL of a new, empty schema.
async fn schema(url: &str) -> String {
    sqlx::any::install_default_drivers();
    let pool = AnyPool::connect(url).await.unwrap();
    let name = format!("test_{}", Uuid::new_v4().simple());
    pool.execute(AssertSqlSafe(format!("CREATE SCHEMA {name}"))).await.unwrap();
    pool.close().await;
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}options[search_path]={name}")
}
