//! The file of keys: written by `pdr-audit key`, read by the service.

use super::secret::SecretDigest;
use crate::new_file::NewFile;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use strum::{Display, EnumString, VariantNames};
use time::OffsetDateTime;

const HEADER: &str =
    "# Keys of pdr-audit, written by `pdr-audit key`. There are no secrets in it: `digest` is the SHA-256 of one.\n\n";

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct KeyFile {
    /// Not optional: a file that ends before its keys must not revoke all of them.
    pub keys: Vec<KeyEntry>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct KeyEntry {
    /// Id by which it is revoked.
    pub id: String,
    /// The name of the client that holds it.
    pub name: String,
    pub digest: SecretDigest,
    pub scopes: Vec<KeyScope>,
    #[serde(with = "time::serde::rfc3339")]
    pub created: OffsetDateTime,
    /// When it begins to be refused; never if omitted.
    #[serde(with = "time::serde::rfc3339::option", default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<OffsetDateTime>,
    /// Limits of its client; absent ones do not limit it.
    #[serde(flatten)]
    pub limits: ClientLimits,
}

/// Limits of a client, which all its keys share: of each the least that a key of it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct ClientLimits {
    /// Maximum number of tokens to score a minute; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u64>,
    /// Maximum number of tokens to score in 24 hours; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u64>,
    /// Maximum number of requests in flight; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<usize>,
    /// Maximum size of the samples in the store, as lines of JSON in bytes; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_bytes: Option<u64>,
    /// Maximum number of datasets in the store; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datasets: Option<u64>,
    /// Maximum number of jobs in the store, finished or not; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u64>,
}

impl ClientLimits {
    /// Returns the lower of each limit.
    #[must_use]
    pub fn lower(self, other: Self) -> Self {
        fn lower<N: Ord>(one: Option<N>, other: Option<N>) -> Option<N> {
            one.into_iter().chain(other).min()
        }
        Self {
            tokens_per_minute: lower(self.tokens_per_minute, other.tokens_per_minute),
            tokens_per_day: lower(self.tokens_per_day, other.tokens_per_day),
            requests: lower(self.requests, other.requests),
            stored_bytes: lower(self.stored_bytes, other.stored_bytes),
            datasets: lower(self.datasets, other.datasets),
            jobs: lower(self.jobs, other.jobs),
        }
    }

    /// The limits that there are, each with what it counts, in the singular, and the words after that.
    pub fn named(&self) -> impl Iterator<Item = (u64, &'static str, &'static str)> {
        let limits = [
            (self.tokens_per_minute, "token", " a minute"),
            (self.tokens_per_day, "token", " a day"),
            (self.requests.map(|requests| requests as u64), "request", " at once"),
            (self.stored_bytes, "byte", " stored"),
            (self.datasets, "dataset", " stored"),
            (self.jobs, "job", " stored"),
        ];
        limits.into_iter().filter_map(|(limit, counted, rest)| Some((limit?, counted, rest)))
    }
}

/// Why a file of keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    #[error("the keys in {path}: {error}")]
    File { path: PathBuf, error: std::io::Error },
    #[error("the keys in {path}: {fault}")]
    Invalid { path: PathBuf, fault: String },
}

impl KeyFile {
    /// Reads the file.
    ///
    /// # Errors
    /// [`KeyFileError`], with the path and the fault.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| KeyFileError::File { path: path.to_owned(), error })?;
        let parsed = toml::from_str::<Self>(&text).map_err(|error| error.to_string());
        let checked = parsed.and_then(|file| file.fault().map_or(Ok(file), Err));
        checked.map_err(|fault| KeyFileError::Invalid { path: path.to_owned(), fault })
    }

    /// Reads the file, which need not be there yet.
    pub fn read_or_new(path: &Path) -> Result<Self, KeyFileError> {
        match Self::read(path) {
            Err(KeyFileError::File { error, .. }) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            read => read,
        }
    }

    /// Keeps other programs from changing the file until what is returned is dropped: whoever reads it and writes it again would
    /// undo what another has written meanwhile. Waits for one that is at it. The lock is a file of its own beside it, since the file
    /// itself is replaced.
    ///
    /// # Errors
    /// [`KeyFileError::File`] where there can be no such file, or it cannot be locked.
    pub fn lock(path: &Path) -> Result<File, KeyFileError> {
        let path = path.with_added_extension("lock");
        let opened = File::options().create(true).truncate(false).write(true).open(&path);
        let locked = opened.and_then(|file| file.lock().map(|()| file));
        locked.map_err(|error| KeyFileError::File { path, error })
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// [`KeyFileError::File`]; the file is as it was then.
    pub fn write(&self, path: &Path) -> Result<(), KeyFileError> {
        let fault = |error: toml::ser::Error| KeyFileError::Invalid { path: path.to_owned(), fault: error.to_string() };
        let text = format!("{HEADER}{}", toml::to_string(self).map_err(fault)?);
        let written = NewFile::create(path).and_then(|file| file.write(text.as_bytes()));
        written.map_err(|error| KeyFileError::File { path: path.to_owned(), error })
    }

    /// Returns the fault of the keys, in words; `None` if there is none.
    fn fault(&self) -> Option<String> {
        let mut ids = HashSet::new();
        self.keys.iter().find_map(|key| {
            let KeyEntry { id, name, scopes, limits, .. } = key;
            let fault = if !ids.insert(id) {
                "another key has the same id".to_owned()
            } else if !crate::config::is_id(name) {
                "its name is not 1 to 100 of the characters A-Z a-z 0-9 . _ -".to_owned()
            } else if scopes.is_empty() {
                "it has no scopes".to_owned()
            } else {
                let (_, counted, rest) = limits.named().find(|(limit, ..)| *limit == 0)?;
                format!("it has 0 {counted}s{rest}")
            };
            Some(format!("key `{id}`: {fault}"))
        })
    }
}

/// A scope of a key: the requests that it allows.
#[derive(
    Clone, Copy, Debug, Display, EnumString, VariantNames, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum KeyScope {
    /// To score texts while the client waits.
    Score,
    /// To submit jobs and datasets, and to see one's own.
    Audit,
    /// To load and unload models, to tune adapters, and to see what all clients own.
    Admin,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str) -> KeyEntry {
        KeyEntry {
            id: id.to_owned(),
            name: "alice".to_owned(),
            digest: SecretDigest::new(id),
            scopes: vec![KeyScope::Score, KeyScope::Audit],
            created: OffsetDateTime::UNIX_EPOCH,
            expires: None,
            limits: ClientLimits { tokens_per_minute: Some(1_000), ..ClientLimits::default() },
        }
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys.toml");
        assert!(KeyFile::read_or_new(&path).unwrap().keys.is_empty());
        assert!(KeyFile::read(&path).unwrap_err().to_string().contains("keys.toml"));
        std::fs::write(&path, HEADER).unwrap();
        assert!(KeyFile::read(&path).unwrap_err().to_string().contains("missing field `keys`"));
        KeyFile::default().write(&path).unwrap();
        assert!(KeyFile::read(&path).unwrap().keys.is_empty());
        let expiring = KeyEntry { expires: Some(OffsetDateTime::UNIX_EPOCH), ..entry("b") };
        let file = KeyFile { keys: vec![entry("a"), expiring] };
        file.write(&path).unwrap();
        let read = KeyFile::read(&path).unwrap();
        assert_eq!(format!("{read:?}"), format!("{file:?}"));
    }

    #[test]
    fn faults_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys.toml");
        let fault = |keys: Vec<KeyEntry>| {
            KeyFile { keys }.write(&path).unwrap();
            KeyFile::read(&path).unwrap_err().to_string()
        };
        assert!(fault(vec![entry("a"), entry("a")]).contains("key `a`: another key has the same id"));
        assert!(fault(vec![KeyEntry { name: "a b".to_owned(), ..entry("a") }]).contains("its name"));
        assert!(fault(vec![KeyEntry { scopes: vec![], ..entry("a") }]).contains("no scopes"));
        assert!(
            fault(vec![KeyEntry {
                limits: ClientLimits { requests: Some(0), ..ClientLimits::default() },
                ..entry("a")
            }])
            .contains("0 requests")
        );
        // A limit that is misspelt must not be none.
        KeyFile { keys: vec![entry("a")] }.write(&path).unwrap();
        let misspelt = std::fs::read_to_string(&path).unwrap().replace("tokens_per_minute", "token_per_minute");
        std::fs::write(&path, misspelt).unwrap();
        assert!(KeyFile::read(&path).unwrap_err().to_string().contains("token_per_minute"));
        std::fs::write(&path, "keys = 1").unwrap();
        assert!(KeyFile::read(&path).unwrap_err().to_string().contains("expected a sequence"));
    }
}
