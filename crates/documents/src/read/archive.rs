//! The entries of a ZIP archive, one at a time and in the order of their names. Nothing is written to where a name leads.

use super::directory_end::DeclaredDirectory;
use super::source::{ByteSource, FileStamp};
use crate::error::{DocumentError, DocumentFault};
use crate::limits::ReadLimits;
use std::collections::BTreeMap;
use std::io::{Read, copy};
use tempfile::spooled_tempfile;
use zip::ZipArchive;

/// Bytes of an entry that are held in memory; a larger entry goes to a temporary file without a name.
const IN_MEMORY: usize = 8 << 20;

/// Maximum number of bytes of the directory of an archive, with names and comments of all entries.
const MAX_DIRECTORY: u64 = 128 << 20;

/// An archive of documents that is being read.
pub struct OpenArchive {
    archive: ZipArchive<ByteSource>,
    /// Ids and places of the entries that are left, the last one first.
    entries: Vec<(String, usize)>,
    left: u64,
    limits: ReadLimits,
    /// The file of the archive, by its id, until it was checked for changes.
    file: Option<(String, FileStamp)>,
}

/// An entry of an archive: its bytes, or the reason why there are none.
pub struct ArchiveEntry {
    pub id: String,
    pub content: Result<ByteSource, DocumentFault>,
}

/// Opens the directory of an archive.
///
/// # Errors
/// If it is no archive, or has too many entries or too large a directory.
pub fn directory(mut source: ByteSource, limits: &ReadLimits) -> Result<ZipArchive<ByteSource>, DocumentFault> {
    // Before the directory is read, which takes memory for every entry.
    let declared = DeclaredDirectory::read(&mut source)?;
    if declared.entries > limits.entries as u64 {
        let count = usize::try_from(declared.entries).unwrap_or(usize::MAX);
        return Err(DocumentFault::TooManyEntries { count, limits: *limits });
    }
    if declared.bytes > MAX_DIRECTORY {
        return Err(DocumentFault::DirectoryTooLarge(declared.bytes, MAX_DIRECTORY));
    }
    let archive = ZipArchive::new(source)?;
    match archive.len() {
        count if count > limits.entries => Err(DocumentFault::TooManyEntries { count, limits: *limits }),
        _ => Ok(archive),
    }
}

impl OpenArchive {
    /// Sorts the entries of an archive, whose ids begin with `prefix`; also returns those that are no documents by their names.
    pub fn new(
        archive: ZipArchive<ByteSource>,
        prefix: &str,
        limits: ReadLimits,
        file: Option<(String, FileStamp)>,
    ) -> (Self, Vec<DocumentError>) {
        let (mut entries, mut faults) = (BTreeMap::new(), Vec::new());
        for index in 0..archive.len() {
            let name = archive.name_for_index(index).and_then(Result::ok);
            let name = name.as_deref().unwrap_or_default();
            if name.ends_with('/') {
                continue;
            }
            let fault = match safe_name(name) {
                None => DocumentFault::UnsafeName,
                Some(path) if is_hidden(&path) => DocumentFault::Hidden,
                Some(path) => match entries.insert(format!("{prefix}{path}"), index) {
                    Some(_) => DocumentFault::NameTwice,
                    None => continue,
                },
            };
            faults.push(DocumentError::new(&format!("{prefix}{name}"), fault));
        }
        let entries = entries.into_iter().rev().collect();
        (Self { archive, entries, left: limits.archive, limits, file }, faults)
    }

    /// The next entry. An archive that holds too much as a whole, or that has changed in the end, is an error.
    pub fn next_entry(&mut self) -> Option<Result<ArchiveEntry, DocumentError>> {
        let Some((id, index)) = self.entries.pop() else {
            let (name, stamp) = self.file.take()?;
            return stamp.check().err().map(|fault| Err(DocumentError { name, fault }));
        };
        let content = self.content(index);
        if let Err(fault @ DocumentFault::ArchiveTooLarge(_)) = content {
            self.entries.clear();
            return Some(Err(DocumentError::new(&id, fault)));
        }
        Some(Ok(ArchiveEntry { id, content }))
    }

    fn content(&mut self, index: usize) -> Result<ByteSource, DocumentFault> {
        let entry = self.archive.by_index(index).map_err(|error| match error {
            zip::result::ZipError::UnsupportedArchive(zip::result::ZipError::PASSWORD_REQUIRED) => {
                DocumentFault::Encrypted
            }
            error => error.into(),
        })?;
        if entry.is_symlink() {
            return Err(DocumentFault::NoFile);
        }
        let most = self.limits.entry.min(self.left);
        let mut content = spooled_tempfile(IN_MEMORY);
        let size = copy(&mut entry.take(most.saturating_add(1)), &mut content)?;
        if size > self.left {
            return Err(DocumentFault::ArchiveTooLarge(self.limits));
        }
        self.left -= size.min(most);
        match size > most {
            true => Err(DocumentFault::TooLarge(self.limits.entry)),
            false => Ok(Box::new(content)),
        }
    }
}

/// The name of an entry as a relative path with `/`; `None` if it could lead outside of a folder.
fn safe_name(name: &str) -> Option<String> {
    let name = name.replace('\\', "/");
    let is_drive = name.as_bytes().get(1) == Some(&b':') && name.as_bytes()[0].is_ascii_alphabetic();
    let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let is_safe = !name.starts_with('/') && !is_drive && !name.contains('\0') && !parts.contains(&"..");
    (is_safe && !parts.is_empty()).then(|| parts.join("/"))
}

/// Returns true for hidden files, and for what macOS adds to archives.
fn is_hidden(path: &str) -> bool {
    path.split('/').any(|part| part.starts_with('.') || part == "__MACOSX")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_relative_and_inside() {
        let cases = [
            ("a.txt", Some("a.txt")),
            ("a/b.txt", Some("a/b.txt")),
            ("./a//b.txt", Some("a/b.txt")),
            ("a\\b.txt", Some("a/b.txt")),
            ("a..b/..c", Some("a..b/..c")),
            ("/etc/passwd", None),
            ("\\\\server\\a", None),
            ("C:\\a.txt", None),
            ("../a.txt", None),
            ("a/../../b.txt", None),
            ("a/..", None),
            ("a\0b", None),
            ("", None),
            ("./.", None),
        ];
        for (name, expected) in cases {
            assert_eq!(safe_name(name).as_deref(), expected, "{name}");
        }
    }
}
