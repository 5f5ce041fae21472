//! Names from outside: what is accepted here can stand in a path of the cache and in a URL.

/// Longest name of an account or of a repository, in bytes.
const LONGEST_NAME: usize = 96;

/// Longest revision, in bytes.
const LONGEST_REVISION: usize = 255;

/// The name of a repository of the Hub, `name` or `account/name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RepoId(String);

impl RepoId {
    /// The name, if the Hub could have such a repository: see `validate_repo_id` of Python's `huggingface_hub`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let legal = parts.by_ref().take(2).all(is_repo_part) && parts.next().is_none();
        let legal = legal && !text.contains("--") && !text.contains("..") && !text.ends_with(".git");
        legal.then(|| Self(text.to_owned()))
    }

    /// The name as the Hub writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for RepoId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_repo_part(part: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| !matches!(c, '-' | '.'));
    part.len() <= LONGEST_NAME
        && part.chars().all(is_name_char)
        && edge(part.chars().next())
        && edge(part.chars().next_back())
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

/// Whether the text is a plain file name: no directories, nothing hidden, nothing a shell or a URL reads otherwise.
pub fn is_file_name(text: &str) -> bool {
    (1..=255).contains(&text.len()) && text.chars().all(is_name_char) && !text.starts_with('.')
}

/// Whether git could have a branch or tag of this name, and the name stays inside a directory as a relative path.
pub fn is_revision(text: &str) -> bool {
    let forbidden = |c: char| c.is_control() || matches!(c, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\');
    text.len() <= LONGEST_REVISION
        && !text.contains(forbidden)
        && text.split('/').all(|part| !part.is_empty() && !part.starts_with('.') && !part.contains(".."))
}

/// Whether the text is a full commit hash.
pub fn is_commit(text: &str) -> bool {
    is_hex(text, 40)
}

/// Whether the text is `length` lower-case hexadecimal digits.
pub fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
