//! The words in which databases differ.

use sqlx::AssertSqlSafe;

/// A kind of database.
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
