//! The tables, as migrations that are applied in order, and the words in which databases differ.

use sqlx::any::AnyArguments;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::query::Query;
use sqlx::{Any, AssertSqlSafe, SqlSafeStr};
use std::borrow::Cow;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// A statement in the words of this database: `{now}` is the time in microseconds since 1970, `{skip_locked}` passes over
    /// rows that another transaction holds, `{bytes}` is the type of bytes, `{position}(a, b)`
    /// where b begins in a.
    pub fn sql(self, statement: &'static str) -> AssertSqlSafe<String> {
        let (now, skip_locked, bytes, position) = match self {
            // One connection has the file, so no row is held.
            Self::Sqlite => ("CAST(unixepoch('subsec') * 1000000 AS INTEGER)", "", "BLOB", "instr"),
            Self::Postgres => (
                "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)",
                "FOR UPDATE SKIP LOCKED",
                "BYTEA",
                "strpos",
            ),
        };
        AssertSqlSafe(
            statement
                .replace("{now}", now)
                .replace("{skip_locked}", skip_locked)
                .replace("{bytes}", bytes)
                .replace("{position}", position),
        )
    }
}

/// Returns a query for all columns of a table. It is prepared anew each time: PostgreSQL refuses one that it has kept once a newer
/// version has added a column.
pub fn query_all_columns<'q>(statement: impl SqlSafeStr) -> Query<'q, Any, AnyArguments> {
    sqlx::query(statement).persistent(false)
}

/// Each migration with its number and what it does. One that was released is never changed.
const MIGRATIONS: [(i64, &str, &str); 7] = [
    (
        1,
        "datasets and jobs",
        // A dataset has a key of its own, under which its samples are written before the address of its content is known. `state` is
        // `uploading`, `ready` or, for the samples of a job that brings them along, `inline`.
        "CREATE TABLE datasets (
        dataset TEXT PRIMARY KEY,
        id TEXT UNIQUE,
        state TEXT NOT NULL,
        description TEXT NOT NULL,
        blocks BIGINT NOT NULL,
        retain BIGINT NOT NULL,
        texts BIGINT NOT NULL,
        created_at BIGINT NOT NULL,
        touched_at BIGINT NOT NULL
    );
    CREATE TABLE samples (
        dataset TEXT NOT NULL REFERENCES datasets (dataset) ON DELETE CASCADE,
        block BIGINT NOT NULL,
        content TEXT NOT NULL,
        PRIMARY KEY (dataset, block)
    );
    CREATE TABLE jobs (
        id TEXT PRIMARY KEY,
        kind TEXT NOT NULL,
        status TEXT NOT NULL,
        model TEXT NOT NULL,
        summary TEXT NOT NULL,
        request TEXT NOT NULL,
        dataset TEXT REFERENCES datasets (dataset) ON DELETE SET NULL,
        weight BIGINT NOT NULL,
        done BIGINT NOT NULL,
        revision BIGINT NOT NULL,
        created_at BIGINT NOT NULL,
        started_at BIGINT,
        finished_at BIGINT,
        failure TEXT,
        attempts BIGINT NOT NULL,
        claim TEXT,
        lease_until BIGINT,
        cancel BIGINT NOT NULL,
        numerics TEXT
    );
    CREATE INDEX jobs_by_status ON jobs (status, id);
    CREATE INDEX jobs_by_dataset ON jobs (dataset);
    CREATE TABLE results (
        job TEXT PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
        report TEXT NOT NULL,
        header TEXT NOT NULL
    );
    CREATE TABLE scores (
        job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
        block BIGINT NOT NULL,
        content TEXT NOT NULL,
        PRIMARY KEY (job, block)
    );
    CREATE TABLE idempotency_keys (
        client_key TEXT PRIMARY KEY,
        digest TEXT NOT NULL,
        job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE
    );",
    ),
    (
        2,
        "deadlines",
        // Samples may have a field `columns` from here on, which earlier versions refuse.
        "ALTER TABLE jobs ADD COLUMN deadline BIGINT;",
    ),
    (
        3,
        "adapters",
        // An adapter has the id of the job that makes it, and outlives that job. It is `ready` once its files are there.
        "ALTER TABLE jobs ADD COLUMN note TEXT;
    CREATE TABLE adapters (
        adapter TEXT PRIMARY KEY,
        model TEXT NOT NULL,
        name TEXT NOT NULL,
        base_digest TEXT NOT NULL,
        ready BIGINT NOT NULL,
        created_at BIGINT NOT NULL,
        UNIQUE (model, name)
    );
    CREATE TABLE adapter_blocks (
        adapter TEXT NOT NULL REFERENCES adapters (adapter) ON DELETE CASCADE,
        file TEXT NOT NULL,
        block BIGINT NOT NULL,
        content {bytes} NOT NULL,
        PRIMARY KEY (adapter, file, block)
    );",
    ),
    (
        4,
        "owners",
        // Clients may own datasets of the same content, so that `address` takes the place of `id`, which was unique over all of them
        // and is not used any more. What there was before belongs to nobody.
        "ALTER TABLE jobs ADD COLUMN owner TEXT NOT NULL DEFAULT '';
    ALTER TABLE datasets ADD COLUMN owner TEXT NOT NULL DEFAULT '';
    ALTER TABLE datasets ADD COLUMN address TEXT;
    UPDATE datasets SET address = id, id = NULL;
    CREATE UNIQUE INDEX datasets_by_address ON datasets (owner, address);
    CREATE INDEX jobs_by_owner_and_status ON jobs (kind, owner, status);
    CREATE INDEX jobs_by_owner_and_start ON jobs (kind, owner, started_at);
    CREATE TABLE submissions (
        owner TEXT NOT NULL,
        client_key TEXT NOT NULL,
        digest TEXT NOT NULL,
        job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
        PRIMARY KEY (owner, client_key)
    );
    INSERT INTO submissions (owner, client_key, digest, job) SELECT '', client_key, digest, job FROM idempotency_keys;
    DROP TABLE idempotency_keys;",
    ),
    (
        5,
        "plans",
        // `texts` is the address of a job's samples, whether or not they are a dataset. A plan is filed under the digest of its content.
        "ALTER TABLE jobs ADD COLUMN texts TEXT;
    CREATE INDEX jobs_by_texts ON jobs (owner, texts);
    CREATE TABLE plans (
        owner TEXT NOT NULL,
        plan TEXT NOT NULL,
        content TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        PRIMARY KEY (owner, plan)
    );",
    ),
    (
        6,
        "seals",
        // Rows of before have no seal, and earlier versions write none. `end_seal` covers how a job ended. `blocks` counts those of the
        // scores, and of the files of an adapter.
        "ALTER TABLE datasets ADD COLUMN seal TEXT;
    ALTER TABLE samples ADD COLUMN seal TEXT;
    ALTER TABLE jobs ADD COLUMN seal TEXT;
    ALTER TABLE jobs ADD COLUMN end_seal TEXT;
    ALTER TABLE results ADD COLUMN blocks BIGINT;
    ALTER TABLE results ADD COLUMN seal TEXT;
    ALTER TABLE scores ADD COLUMN seal TEXT;
    ALTER TABLE adapters ADD COLUMN blocks BIGINT;
    ALTER TABLE adapters ADD COLUMN seal TEXT;
    ALTER TABLE adapter_blocks ADD COLUMN seal TEXT;
    ALTER TABLE plans ADD COLUMN seal TEXT;",
    ),
    (
        7,
        "sizes",
        // The size of the samples, for the limits of clients alone, so that no seal covers it. Earlier versions do not count.
        "ALTER TABLE datasets ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
    UPDATE datasets SET bytes = (SELECT CAST(COALESCE(SUM(octet_length(content)), 0) AS BIGINT) FROM samples
        WHERE samples.dataset = datasets.dataset);",
    ),
];

/// The first version whose rows have seals.
pub const SEALED: i64 = 6;

/// The first version whose tables can be read without a migration.
pub const OLDEST: i64 = 5;

/// The version of the tables as they are now.
pub const NEWEST: i64 = MIGRATIONS[MIGRATIONS.len() - 1].0;

/// All migrations up to a version.
pub fn migrator(dialect: Dialect, version: i64) -> Migrator {
    let migration = |(version, description, sql): (i64, &'static str, &'static str)| {
        let sql = dialect.sql(sql).into_sql_str();
        Migration::new(version, Cow::Borrowed(description), MigrationType::Simple, sql, false)
    };
    let wanted = MIGRATIONS.into_iter().filter(|(number, ..)| *number <= version);
    Migrator::with_migrations(wanted.map(migration).collect())
}
