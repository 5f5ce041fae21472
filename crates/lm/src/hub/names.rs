//! Validation of names from outside. A name accepted here is safe in a path of the cache and in a URL.

use std::fmt;

/// The maximum length of the name of an account or of a repository, in bytes.
const MAX_NAME_BYTES: usize = 96;

/// The maximum length of a file's path, in bytes.
const MAX_PATH_BYTES: usize = 1024;

/// The maximum length of a revision, in bytes.
const MAX_REVISION_BYTES: usize = 255;

/// The name of a repository of the Hub, `name` or `account/name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RepoId(String);

impl RepoId {
    /// Parses a name. The rules are those of `validate_repo_id` of Python's `huggingface_hub`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let legal = parts.by_ref().take(2).all(is_repo_part) && parts.next().is_none();
        let legal = legal && !text.contains("--") && !text.contains("..") && !text.ends_with(".git");
        legal.then(|| Self(text.to_owned()))
    }

    /// The name as written on the Hub.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A file of a repository of the Hub, as in `hub:account/name:model-Q4_K_M.gguf`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoFile {
    pub repo: RepoId,
    pub name: String,
}

impl RepoFile {
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (repo, name) = text.strip_prefix("hub:")?.split_once(':')?;
        let repo = RepoId::parse(repo)?;
        is_file_name(name).then(|| Self { repo, name: name.to_owned() })
    }
}

impl std::fmt::Display for RepoId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_repo_part(part: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| !matches!(c, '-' | '.'));
    part.len() <= MAX_NAME_BYTES
        && part.chars().all(is_name_char)
        && edge(part.chars().next())
        && edge(part.chars().next_back())
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

/// Returns true if the text is a plain file name: without directories, not hidden, and without characters that are special
/// in a shell or a URL.
pub fn is_file_name(text: &str) -> bool {
    (1..=255).contains(&text.len()) && text.chars().all(is_name_char) && !text.starts_with('.')
}

/// Returns true if the text is a path of files and directories of git, none of them hidden, that does not leave its directory.
pub fn is_file_path(text: &str) -> bool {
    let is_part = |part: &str| (1..=255).contains(&part.len()) && !part.starts_with('.');
    text.len() <= MAX_PATH_BYTES
        && !text.contains(|c: char| c.is_control() || matches!(c, '\\' | ':'))
        && text.split('/').all(is_part)
}

/// Returns true if the text is a valid name of a branch or tag in git that, as a relative path, does not leave its directory.
pub fn is_revision(text: &str) -> bool {
    let forbidden = |c: char| c.is_control() || matches!(c, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\');
    text.len() <= MAX_REVISION_BYTES
        && !text.contains(forbidden)
        && text.split('/').all(|part| !part.is_empty() && !part.starts_with('.') && !part.contains(".."))
}

/// Returns true if the text is a full commit hash.
pub fn is_commit(text: &str) -> bool {
    is_hex(text, 40)
}

/// Returns true if the text consists of `length` lower-case hexadecimal digits.
pub fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// The kind of a repository: model or dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepoKind {
    Model,
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

    /// Prefix of the repository's name in the URL of a file.
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
