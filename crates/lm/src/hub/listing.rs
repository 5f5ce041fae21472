//! The Hub's list of the files of a repository at a revision.

use super::RepoKind;
use super::names::{is_commit, is_file_name, is_file_path, is_hex};
use serde::Deserialize;
use sha1::Sha1;
use sha2::Sha256;
use sha2::digest::{Digest, DynDigest};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};

/// The files of a repository at a commit.
#[derive(Debug, PartialEq, Eq)]
pub struct Listing {
    /// The commit, 40 hexadecimal digits.
    pub commit: String,
    /// Files by name. Names that lead out of a directory are left out, and so are a model's files in subdirectories.
    pub files: BTreeMap<String, RemoteFile>,
}

/// One listed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFile {
    /// Its name; a file of a dataset may be in a subdirectory.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    pub digest: ContentDigest,
}

/// The used part of the response of `GET /api/models/{repo}/revision/{revision}?blobs=true`, or of `/api/datasets`.
#[derive(Deserialize)]
struct ListingResponse {
    sha: String,
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sibling {
    rfilename: String,
    size: Option<u64>,
    blob_id: Option<String>,
    lfs: Option<LfsPointer>,
}

#[derive(Deserialize)]
struct LfsPointer {
    sha256: String,
}

impl Listing {
    /// Parses the Hub's response. Every file must have a size and a digest, since it could not be verified otherwise.
    pub fn parse(json: &[u8], kind: RepoKind) -> Result<Self, String> {
        let response: ListingResponse =
            serde_json::from_slice(json).map_err(|e| format!("not a list of files: {e}"))?;
        if !is_commit(&response.sha) {
            return Err(format!("not a commit: {:?}", response.sha));
        }
        let is_wanted = match kind {
            RepoKind::Model => is_file_name,
            RepoKind::Dataset => is_file_path,
        };
        let files = response.siblings.into_iter().filter(|sibling| is_wanted(&sibling.rfilename));
        let files = files.map(|sibling| sibling.into_file().map(|file| (file.name.clone(), file)));
        Ok(Self { commit: response.sha, files: files.collect::<Result<_, _>>()? })
    }
}

impl Sibling {
    fn into_file(self) -> Result<RemoteFile, String> {
        let digest = ContentDigest::new(self.lfs.as_ref().map(|lfs| &*lfs.sha256), self.blob_id.as_deref());
        match (self.size, digest) {
            (Some(size), Some(digest)) => Ok(RemoteFile { name: self.rfilename, size, digest }),
            _ => Err(format!("`{}` is listed without its size and digest", self.rfilename)),
        }
    }
}

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
