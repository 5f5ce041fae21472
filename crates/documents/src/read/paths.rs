//! The files of paths, with their ids, in a fixed order. Nothing is opened here.

use crate::error::{DocumentError, DocumentFault};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use walkdir::{DirEntry, WalkDir};

/// A file that is to be read.
#[derive(Debug, PartialEq, Eq)]
pub struct ListedFile {
    pub path: PathBuf,
    pub id: String,
    /// The file was named, and is not one of a folder that was.
    pub is_named: bool,
}

/// The files of paths and of the folders among them: paths in the order given, files of a folder sorted by their ids. Also returns
/// what is skipped. With several paths, the ids of a folder's files begin with the name of the folder.
///
/// # Errors
/// If a path that was named cannot be read, or two files have the same id.
pub fn list(paths: &[PathBuf]) -> Result<(Vec<ListedFile>, Vec<DocumentError>), DocumentError> {
    if paths.is_empty() {
        return Err(DocumentError::new("paths", DocumentFault::NoPath));
    }
    let (mut files, mut skipped) = (Vec::new(), Vec::new());
    for path in paths {
        let named = |fault| DocumentError::new(&path.display().to_string(), fault);
        let metadata = path.metadata().map_err(|error| named(error.into()))?;
        if metadata.is_dir() {
            let prefix = if paths.len() > 1 { format!("{}/", name(path)) } else { String::new() };
            let (inside, faults) = list_folder(path, &prefix)?;
            files.extend(inside);
            skipped.extend(faults);
        } else if metadata.is_file() {
            files.push(ListedFile { path: path.clone(), id: name(path), is_named: true });
        } else {
            return Err(named(DocumentFault::NoFile));
        }
    }
    check_ids(&files)?;
    Ok((files, skipped))
}

fn check_ids(files: &[ListedFile]) -> Result<(), DocumentError> {
    let mut ids = HashMap::with_capacity(files.len());
    for file in files {
        if let Some(other) = ids.insert(&file.id, &file.path) {
            let fault = DocumentFault::IdTwice(other.display().to_string());
            return Err(DocumentError::new(&file.path.display().to_string(), fault));
        }
    }
    Ok(())
}

/// The last part of a path; that of the folder it stands for if it ends with `..`.
fn name(path: &Path) -> String {
    let real = || path.canonicalize().ok();
    let name = path.file_name().map(ToOwned::to_owned);
    let name = name.or_else(|| real()?.file_name().map(ToOwned::to_owned));
    name.unwrap_or_default().to_string_lossy().into_owned()
}

fn list_folder(folder: &Path, prefix: &str) -> Result<(Vec<ListedFile>, Vec<DocumentError>), DocumentError> {
    let (mut files, mut skipped) = (Vec::new(), Vec::new());
    let id = |path: &Path| format!("{prefix}{}", relative(path, folder));
    let mut entries = WalkDir::new(folder).min_depth(1).follow_links(true).into_iter();
    while let Some(entry) = entries.next() {
        let (name, fault) = match entry {
            Ok(entry) if is_hidden(&entry) => {
                if entry.file_type().is_dir() {
                    entries.skip_current_dir();
                }
                (id(entry.path()), DocumentFault::Hidden)
            }
            Ok(entry) if entry.file_type().is_dir() => continue,
            Ok(entry) if entry.file_type().is_file() => {
                files.push(ListedFile { id: id(entry.path()), path: entry.into_path(), is_named: false });
                continue;
            }
            Ok(entry) => (id(entry.path()), DocumentFault::NoFile),
            Err(error) => {
                let path = error.path().unwrap_or(folder).to_owned();
                let is_circle = error.loop_ancestor().is_some();
                let fault = if is_circle { DocumentFault::Circle } else { DocumentFault::Io(error.into()) };
                if path == folder {
                    return Err(DocumentError::new(&folder.display().to_string(), fault));
                }
                (id(&path), fault)
            }
        };
        skipped.push(DocumentError { name, fault });
    }
    files.sort_by(|one, other| one.id.cmp(&other.id));
    skipped.sort_by(|one, other| one.name.cmp(&other.name));
    Ok((files, skipped))
}

fn is_hidden(entry: &DirEntry) -> bool {
    entry.file_name().as_encoded_bytes().starts_with(b".")
}

/// A path inside of a folder with `/`, on every system.
fn relative(path: &Path, folder: &Path) -> String {
    let parts = path.strip_prefix(folder).unwrap_or(path).components();
    parts.map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}
