//! The digests by which the Hub lists files. They are also the files' names among the blobs of the cache.

use super::names::is_hex;
use sha1::Sha1;
use sha2::Sha256;
use sha2::digest::{Digest, DynDigest};
use std::fmt;
use std::io::{self, Read};

/// What a file's content must digest to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// SHA-256 of a large file's content, 64 hexadecimal digits.
    Sha256(String),
    /// git's name of a small file: SHA-1 of `blob <size>`, a zero byte and the content, 40 hexadecimal digits.
    GitSha1(String),
}

impl Expected {
    /// The first digest that is one; a large file's `blobId` is that of its pointer, so `sha256` comes first.
    pub fn new(sha256: Option<&str>, git_sha1: Option<&str>) -> Option<Self> {
        match (sha256, git_sha1) {
            (Some(hex), _) => is_hex(hex, 64).then(|| Self::Sha256(hex.to_owned())),
            (None, Some(hex)) => is_hex(hex, 40).then(|| Self::GitSha1(hex.to_owned())),
            (None, None) => None,
        }
    }

    /// The hexadecimal digits.
    pub fn hex(&self) -> &str {
        match self {
            Self::Sha256(hex) | Self::GitSha1(hex) => hex,
        }
    }

    /// The digest of the same kind of `size` bytes that are read from `content`.
    ///
    /// # Errors
    /// Those of reading.
    pub fn of(&self, size: u64, mut content: impl Read) -> io::Result<Self> {
        let mut state: Box<dyn DynDigest> = match self {
            Self::Sha256(_) => Box::new(Sha256::new()),
            Self::GitSha1(_) => Box::new(Sha1::new_with_prefix(format!("blob {size}\0"))),
        };
        let mut buffer = vec![0; 1 << 20];
        loop {
            match content.read(&mut buffer)? {
                0 => break,
                n => state.update(&buffer[..n]),
            }
        }
        let hex = state.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(match self {
            Self::Sha256(_) => Self::Sha256(hex),
            Self::GitSha1(_) => Self::GitSha1(hex),
        })
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sha256(hex) => write!(f, "sha256:{hex}"),
            Self::GitSha1(hex) => write!(f, "git-sha1:{hex}"),
        }
    }
}
