//! The documents of paths, or of one open file: one at a time.

use super::archive::{ArchiveEntry, OpenArchive};
use super::document::{Document, FileContent, read};
use super::kind::DocumentKind;
use super::paths::{ListedFile, list};
use super::source::{ByteSource, FileStamp};
use crate::error::{DocumentError, DocumentFault};
use crate::limits::ReadLimits;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::vec::IntoIter;

/// The documents of files. After an error there are no more.
pub struct Documents {
    files: IntoIter<ListedFile>,
    /// A document that was opened already.
    first: Option<Document>,
    archive: Option<OpenArchive>,
    /// One file was named, so the ids of its entries do not begin with its name if it is an archive.
    is_single: bool,
    skipped: Vec<DocumentError>,
    limits: ReadLimits,
}

/// Finds the documents of paths. A folder stands for all files inside of it, an archive for its entries.
///
/// # Errors
/// If there is no path, one of them cannot be read, or two files have the same id.
pub fn open(paths: &[PathBuf], limits: ReadLimits) -> Result<Documents, DocumentError> {
    let (files, skipped) = list(paths)?;
    let is_single = matches!(&*files, [file] if file.is_named);
    Ok(Documents { files: files.into_iter(), first: None, archive: None, is_single, skipped, limits })
}

/// Opens one file: a document with the id `name`, or an archive of documents. Its kind is told from its bytes; where they do not tell,
/// it is `kind`, or else what the extension of `name` says.
///
/// # Errors
/// If the file cannot be read.
pub fn open_reader(
    reader: impl Read + Seek + Send + 'static,
    name: &str,
    kind: Option<DocumentKind>,
    limits: ReadLimits,
) -> Result<Documents, DocumentError> {
    let files = Vec::new().into_iter();
    let mut documents = Documents { files, first: None, archive: None, is_single: true, skipped: Vec::new(), limits };
    let hint = kind.unwrap_or_else(|| hint(name));
    let content = read(Box::new(reader), name.to_owned(), hint, None, &limits);
    match content.map_err(|fault| DocumentError::new(name, fault))? {
        FileContent::Document(document) => documents.first = Some(document),
        FileContent::Archive(archive, _) => {
            let (archive, skipped) = OpenArchive::new(archive, "", limits, None);
            (documents.archive, documents.skipped) = (Some(archive), skipped);
        }
    }
    Ok(documents)
}

/// The kind that the extension of a name says, without that of a compression.
fn hint(name: &str) -> DocumentKind {
    let name = name.to_ascii_lowercase();
    let inner = [".gz", ".zst", ".zstd"].into_iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(&name);
    DocumentKind::from_extension(&Path::new(inner).extension().unwrap_or_default().to_string_lossy())
}

fn open_file(file: &ListedFile, limits: &ReadLimits) -> Result<FileContent, DocumentFault> {
    let opened = File::open(&file.path)?;
    let stamp = FileStamp::new(&opened)?;
    read(Box::new(opened), file.id.clone(), hint(&file.id), Some(stamp), limits)
}

fn open_entry(content: ByteSource, id: &str, limits: &ReadLimits) -> Result<Document, DocumentFault> {
    match read(content, id.to_owned(), hint(id), None, limits)? {
        FileContent::Document(document) => Ok(document),
        FileContent::Archive(..) => Err(DocumentFault::NestedArchive),
    }
}

impl Documents {
    /// The files that were skipped until now, and why.
    #[must_use]
    pub fn skipped(&self) -> &[DocumentError] {
        &self.skipped
    }

    /// The next entry of the current archive that is a document.
    fn next_entry(&mut self) -> Result<Option<Document>, DocumentError> {
        while let Some(entry) = self.archive.as_mut().and_then(OpenArchive::next_entry) {
            let ArchiveEntry { id, content } = entry?;
            match content.and_then(|content| open_entry(content, &id, &self.limits)) {
                Ok(document) => return Ok(Some(document)),
                Err(fault) => self.skipped.push(DocumentError { name: id, fault }),
            }
        }
        self.archive = None;
        Ok(None)
    }

    fn next_document(&mut self) -> Result<Option<Document>, DocumentError> {
        if let Some(document) = self.first.take() {
            return Ok(Some(document));
        }
        loop {
            if let Some(document) = self.next_entry()? {
                return Ok(Some(document));
            }
            let Some(file) = self.files.next() else { return Ok(None) };
            match open_file(&file, &self.limits) {
                Ok(FileContent::Document(document)) => return Ok(Some(document)),
                Ok(FileContent::Archive(archive, stamp)) => {
                    let prefix = if self.is_single { String::new() } else { format!("{}/", file.id) };
                    let file = stamp.map(|stamp| (file.id, stamp));
                    let (archive, skipped) = OpenArchive::new(archive, &prefix, self.limits, file);
                    self.archive = Some(archive);
                    self.skipped.extend(skipped);
                }
                Err(fault) => {
                    let error = DocumentError { name: file.id, fault };
                    if file.is_named {
                        return Err(error);
                    }
                    self.skipped.push(error);
                }
            }
        }
    }
}

impl Iterator for Documents {
    type Item = Result<Document, DocumentError>;

    fn next(&mut self) -> Option<Self::Item> {
        let document = self.next_document().transpose();
        if let Some(Err(_)) = &document {
            self.files = Vec::new().into_iter();
            self.archive = None;
        }
        document
    }
}
