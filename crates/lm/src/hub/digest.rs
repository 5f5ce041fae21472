//! The digests that the Hub lists for files. They are also the names of blobs in the cache.

use super::names::is_hex;
use sha1::Sha1;
use sha2::Sha256;
use sha2::digest::{Digest, DynDigest};
use std::fmt;
use std::io::{self, Read};

/// A digest of a file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentDigest {
    /// SHA-256 of a large file's content, 64 hexadecimal digits.
    Sha256(String),
    /// git's object name of a small file: SHA-1 of `blob <size>`, a zero byte and the content, 40 hexadecimal digits.
    GitSha1(String),
}

impl ContentDigest {
    /// The digest of a listed file. `sha256` takes precedence, since the `blobId` of a large file is that of its LFS pointer.
    pub fn new(sha256: Option<&str>, git_sha1: Option<&str>) -> Option<Self> {
        match (sha256, git_sha1) {
            (Some(hex), _) => is_hex(hex, 64).then(|| Self::Sha256(hex.to_owned())),
            (None, Some(hex)) => is_hex(hex, 40).then(|| Self::GitSha1(hex.to_owned())),
            (None, None) => None,
        }
    }

    pub fn hex(&self) -> &str {
        match self {
            Self::Sha256(hex) | Self::GitSha1(hex) => hex,
        }
    }

    /// Computes the digest, of the same kind as this one, of `size` bytes read from `content`.
    pub fn compute(&self, size: u64, mut content: impl Read) -> io::Result<Self> {
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

impl fmt::Display for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sha256(hex) => write!(f, "sha256:{hex}"),
            Self::GitSha1(hex) => write!(f, "git-sha1:{hex}"),
        }
    }
}
