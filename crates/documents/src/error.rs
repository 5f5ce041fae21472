//! Faults of files, with a remedy each.

use crate::limits::ReadLimits;

/// A file that cannot be read, by its name.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {fault}")]
pub struct DocumentError {
    /// The id of the document, or the path if it has none.
    pub name: String,
    pub fault: DocumentFault,
}

impl DocumentError {
    pub(crate) fn new(name: &str, fault: impl Into<DocumentFault>) -> Self {
        Self { name: name.to_owned(), fault: fault.into() }
    }
}

/// The reason why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DocumentFault {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("there is no file or folder to read; name at least one")]
    NoPath,
    #[error("it is neither a file nor a folder")]
    NoFile,
    #[error("it is hidden; name it to read it")]
    Hidden,
    #[error("the folders form a circle of symbolic links")]
    Circle,
    #[error("it is a PDF, which has pages and no text; extract its text with `pdftotext -layout`")]
    Pdf,
    #[error("it is {0}, which is not read; save it as plain text or EPUB")]
    Unsupported(&'static str),
    #[error("it is {0}, which is not opened; unpack it, and name the folder")]
    Packed(&'static str),
    #[error("it is {0}, not UTF-8; convert it (`iconv -f {0} -t UTF-8`)")]
    Encoding(&'static str),
    #[error(
        "line {line}: byte {position} of the file is {byte:#04x}, which is not UTF-8; convert it (`iconv -f ISO-8859-1 -t UTF-8`, if \
         that is its encoding)"
    )]
    NotUtf8 {
        /// Counted from one.
        line: u64,
        /// Counted from zero.
        position: u64,
        byte: u8,
    },
    #[error("it is binary data and no text")]
    Binary,
    #[error("it is an archive or a book inside of a compressed file; decompress it first")]
    CompressedArchive,
    #[error("it is an archive in an archive; unpack it beside the other files")]
    NestedArchive,
    #[error("its name promises {0}, and it is no ZIP file; it may be cut off, download it again")]
    NoZip(&'static str),
    #[error("the archive cannot be read ({0}); it may be damaged, download it again")]
    DamagedArchive(#[from] zip::result::ZipError),
    #[error("the archive has {count} entries, and at most {} are read; split it", limits.entries)]
    TooManyEntries { count: usize, limits: ReadLimits },
    #[error("the directory of the archive has {0} bytes, and at most {1} are read; split the archive")]
    DirectoryTooLarge(u64, u64),
    #[error("the archive holds more than {} bytes; split it", .0.archive)]
    ArchiveTooLarge(ReadLimits),
    #[error("it holds more than {0} bytes once it is decompressed; decompress it first, if it is not meant to do harm")]
    TooLarge(u64),
    #[error("its name in the archive is absolute, leads outside of the archive, or is not UTF-8; rename it")]
    UnsafeName,
    #[error("the archive has another entry of this name; rename one of them")]
    NameTwice,
    #[error("it is encrypted with a password; decrypt it first")]
    Encrypted,
    #[error("the EPUB is protected by DRM ({0}); give a copy without protection")]
    Drm(String),
    #[error("the EPUB has no spine, so the order of its chapters is unknown; repair it, or save it as plain text")]
    NoSpine,
    #[error("the EPUB cannot be read ({0}); it may be damaged, download it again")]
    DamagedEpub(String),
    #[error("it changed while it was read; read it again once it is complete")]
    Changed,
    #[error("it has the same id as {0}; rename one of them, or name their common folder")]
    IdTwice(String),
}
