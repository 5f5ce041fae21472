//! One file to one document, or to the archive that it is.

use super::archive::directory;
use super::encoding::{TextChunks, check_head};
use super::epub;
use super::html::HtmlText;
use super::kind::{DocumentKind, is_zip};
use super::source::{ByteSource, Compression, FileStamp, head};
use crate::error::{DocumentError, DocumentFault};
use crate::limits::ReadLimits;
use std::io::{Read, Seek, SeekFrom};
use zip::ZipArchive;

/// First bytes of a file that its kind is told from.
const HEAD: u64 = 8 << 10;

type Chunks = Box<dyn Iterator<Item = Result<String, DocumentFault>> + Send>;

/// A document: an iterator over its text in chunks. It holds its file open, and not its text, unless it is an EPUB.
pub struct Document {
    /// The path relative to the folder or archive that was named, with `/`; the file's name if the file was named.
    pub id: String,
    is_markdown: bool,
    chunks: Chunks,
    stamp: Option<FileStamp>,
}

impl Document {
    /// A document of a text that is at hand.
    #[must_use]
    pub fn from_text(id: String, text: String) -> Self {
        Self::from_chunks(id, [text])
    }

    /// A document of a text that comes in chunks.
    #[must_use]
    pub fn from_chunks<C>(id: String, chunks: C) -> Self
    where
        C: IntoIterator<Item = String>,
        C::IntoIter: Send + 'static,
    {
        Self { id, is_markdown: false, chunks: Box::new(chunks.into_iter().map(Ok)), stamp: None }
    }

    /// Returns true if the text may begin with front matter.
    pub(crate) fn is_markdown(&self) -> bool {
        self.is_markdown
    }
}

impl Iterator for Document {
    type Item = Result<String, DocumentError>;

    fn next(&mut self) -> Option<Self::Item> {
        let chunk = self.chunks.next().or_else(|| {
            let check = self.stamp.take()?.check();
            check.err().map(Err)
        })?;
        Some(chunk.map_err(|fault| DocumentError::new(&self.id, fault)))
    }
}

impl std::fmt::Debug for Document {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Document").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The content of a file.
pub enum FileContent {
    Document(Document),
    Archive(ZipArchive<ByteSource>, Option<FileStamp>),
}

/// Reads what a file is, and checks all of it. `hint` is the kind where the bytes do not tell.
///
/// # Errors
/// If it cannot be read as a document or as an archive of documents.
pub fn read(
    mut source: ByteSource,
    id: String,
    hint: DocumentKind,
    stamp: Option<FileStamp>,
    limits: &ReadLimits,
) -> Result<FileContent, DocumentFault> {
    source.seek(SeekFrom::Start(0))?;
    let mut start = head(&mut source, HEAD)?;
    if is_zip(&start) {
        return read_zip(source, id, stamp, limits);
    }
    let compression = Compression::from_head(&start);
    if compression != Compression::None {
        start = head(compression.reader(&mut source, limits.entry)?, HEAD)?;
        if is_zip(&start) || Compression::from_head(&start) != Compression::None {
            return Err(DocumentFault::CompressedArchive);
        }
    }
    let kind = DocumentKind::from_text(&start, hint)?;
    check_head(&start)?;
    for chunk in TextChunks::new(compression.reader(&mut source, limits.entry)?) {
        chunk?;
    }
    let reader = compression.reader(source, limits.entry)?;
    let chunks: Chunks = match kind {
        DocumentKind::Html | DocumentKind::Xhtml => {
            Box::new(HtmlText::new(without_mark(reader)?, kind == DocumentKind::Xhtml))
        }
        _ => Box::new(TextChunks::new(reader)),
    };
    Ok(FileContent::Document(Document { id, is_markdown: kind == DocumentKind::Markdown, chunks, stamp }))
}

/// Reads an EPUB, or opens an archive of documents. Some formats of office programs are ZIP files, too.
fn read_zip(
    source: ByteSource,
    id: String,
    stamp: Option<FileStamp>,
    limits: &ReadLimits,
) -> Result<FileContent, DocumentFault> {
    let mut archive = directory(source, limits)?;
    let mime_type = match archive.index_for_name("mimetype") {
        Some(index) => String::from_utf8_lossy(&head(archive.by_index(index)?, 80)?).trim().to_owned(),
        None => String::new(),
    };
    let has = |name: &str| archive.index_for_name(name).is_some();
    if mime_type == "application/epub+zip" || has("META-INF/container.xml") {
        let text = epub::text(archive, limits)?;
        return Ok(FileContent::Document(Document { stamp, ..Document::from_text(id, text) }));
    }
    if mime_type.starts_with("application/vnd.oasis.opendocument") {
        return Err(DocumentFault::Unsupported("an ODT file or another one of OpenDocument"));
    }
    if has("[Content_Types].xml") {
        return Err(DocumentFault::Unsupported("a DOCX file or another one of Office Open XML"));
    }
    Ok(FileContent::Archive(archive, stamp))
}

/// Drops the byte order mark of UTF-8.
fn without_mark(mut reader: Box<dyn Read + Send>) -> std::io::Result<impl Read + Send> {
    let start = head(&mut reader, 3)?;
    let start = if start == b"\xef\xbb\xbf" { Vec::new() } else { start };
    Ok(std::io::Cursor::new(start).chain(reader))
}
