//! The Hub's list of the files of a repository at a revision.

use super::RepoKind;
use super::digest::ContentDigest;
use super::names::{is_commit, is_file_name, is_file_path};
use serde::Deserialize;
use std::collections::BTreeMap;

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
