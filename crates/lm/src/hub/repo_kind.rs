//! The kinds of repositories of the Hub, and how their addresses and folders differ.

use std::fmt;

/// What a repository contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepoKind {
    /// A model.
    Model,
    /// A dataset.
    Dataset,
}

impl RepoKind {
    /// The plural, as in the paths of the API and the names of folders in the cache.
    pub(super) fn plural(self) -> &'static str {
        match self {
            Self::Model => "models",
            Self::Dataset => "datasets",
        }
    }

    /// What precedes the name of the repository in the address of a file.
    pub(super) fn path_prefix(self) -> &'static str {
        match self {
            Self::Model => "",
            Self::Dataset => "datasets/",
        }
    }
}

impl fmt::Display for RepoKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Model => "model",
            Self::Dataset => "dataset",
        })
    }
}
