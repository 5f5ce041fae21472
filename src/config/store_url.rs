//! The URL of a database.

use super::values;
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::path::PathBuf;

const A_STORE: &str = "`sqlite://FILE` or `postgres://USER@HOST/DATABASE`";

/// Where the store is.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// A file of SQLite; a relative one from the configuration file counts from that file's directory.
    Sqlite(PathBuf),
    /// A database of PostgreSQL, as a URL that may hold a password.
    Postgres(String),
}

impl fmt::Debug for StoreUrl {
    /// Without the user, the password and what else the URL says.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => formatter.debug_tuple("Sqlite").field(path).finish(),
            Self::Postgres(_) => formatter.write_str("Postgres(..)"),
        }
    }
}

impl<'de> Deserialize<'de> for StoreUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let path = values::relative_path(deserializer)?;
        let url = path.original().to_str().unwrap_or_default();
        match url.split_once("://") {
            Some(("sqlite", file)) if !file.is_empty() => {
                let directory = path.metadata_path().and_then(|file| file.parent());
                Ok(Self::Sqlite(directory.map_or_else(|| file.into(), |directory| directory.join(file))))
            }
            Some(("postgres" | "postgresql", rest)) if !rest.is_empty() => Ok(Self::Postgres(url.to_owned())),
            // Not what was given: it may hold a password.
            _ => Err(D::Error::invalid_value(Unexpected::Other("another string"), &A_STORE)),
        }
    }
}
