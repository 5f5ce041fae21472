//! What the Hub lists of a repository at a revision.

use super::digest::Expected;
use super::names::{is_commit, is_file_name};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The files of a repository at a commit.
#[derive(Debug, PartialEq, Eq)]
pub struct Listing {
    /// The commit, 40 hexadecimal digits.
    pub commit: String,
    /// Files by name. Those in subdirectories are left out, and with them every name that leads out of a directory.
    pub files: BTreeMap<String, RemoteFile>,
}

/// One listed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFile {
    /// Its name, plain.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// The digest of its content.
    pub digest: Expected,
}

/// The answer of `GET /api/models/{repo}/revision/{revision}?blobs=true`, as far as it is used.
#[derive(Deserialize)]
struct Answer {
    sha: String,
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sibling {
    rfilename: String,
    size: Option<u64>,
    blob_id: Option<String>,
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    sha256: String,
}

impl Listing {
    /// Reads the Hub's answer. Every file has a size and a digest, or it could not be verified.
    ///
    /// # Errors
    /// What is wrong with the answer.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        let answer: Answer = serde_json::from_slice(json).map_err(|e| format!("not a list of files: {e}"))?;
        if !is_commit(&answer.sha) {
            return Err(format!("not a commit: {:?}", answer.sha));
        }
        let files = answer.siblings.into_iter().filter(|sibling| is_file_name(&sibling.rfilename));
        let files = files.map(|sibling| sibling.into_file().map(|file| (file.name.clone(), file)));
        Ok(Self { commit: answer.sha, files: files.collect::<Result<_, _>>()? })
    }
}

impl Sibling {
    fn into_file(self) -> Result<RemoteFile, String> {
        let digest = Expected::new(self.lfs.as_ref().map(|lfs| &*lfs.sha256), self.blob_id.as_deref());
        match (self.size, digest) {
            (Some(size), Some(digest)) => Ok(RemoteFile { name: self.rfilename, size, digest }),
            _ => Err(format!("`{}` is listed without its size and digest", self.rfilename)),
        }
    }
}
