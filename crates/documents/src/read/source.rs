//! The bytes of a file: read from the beginning as often as needed, decompressed, within a bound.

use crate::error::DocumentFault;
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{BufReader, Error, ErrorKind, Read, Result, Seek, SeekFrom};
use std::time::SystemTime;

const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

/// A file, or what is read as one.
pub trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

pub type ByteSource = Box<dyn ReadSeek>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    pub fn from_head(head: &[u8]) -> Self {
        match head {
            head if head.starts_with(GZIP) => Self::Gzip,
            head if head.starts_with(ZSTD) => Self::Zstd,
            _ => Self::None,
        }
    }

    /// The bytes of a reader from its beginning, decompressed; a reader of more than `limit` decompressed bytes fails.
    pub fn reader<'a>(self, mut reader: impl Read + Seek + Send + 'a, limit: u64) -> Result<Box<dyn Read + Send + 'a>> {
        reader.seek(SeekFrom::Start(0))?;
        let reader = BufReader::with_capacity(64 << 10, reader);
        Ok(match self {
            Self::None => Box::new(reader),
            Self::Gzip => Box::new(Decompressed { reader: MultiGzDecoder::new(reader), limit, left: limit }),
            Self::Zstd => Box::new(Decompressed { reader: zstd::Decoder::with_buffer(reader)?, limit, left: limit }),
        })
    }
}

/// Describes faults of the compressed data, and fails after `left` more bytes.
struct Decompressed<R> {
    reader: R,
    limit: u64,
    left: u64,
}

impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let read = self.reader.read(buffer).map_err(|error| match error.kind() {
            ErrorKind::Interrupted => error,
            kind => Error::new(
                kind,
                format!("the compressed data are cut off or damaged ({error}); download the file again"),
            ),
        })?;
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => return Err(Error::new(ErrorKind::FileTooLarge, DocumentFault::TooLarge(self.limit).to_string())),
        }
        Ok(read)
    }
}

/// Reads the first bytes, as many as there are or `length`.
pub fn head(reader: impl Read, length: u64) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    reader.take(length).read_to_end(&mut head)?;
    Ok(head)
}

/// Size and time of a file, to see later that it has not changed.
pub struct FileStamp {
    file: File,
    size: u64,
    modified: Option<SystemTime>,
}

impl FileStamp {
    pub fn new(file: &File) -> Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self { file: file.try_clone()?, size: metadata.len(), modified: metadata.modified().ok() })
    }

    /// Fails if the file has changed since.
    pub fn check(&self) -> std::result::Result<(), DocumentFault> {
        let metadata = self.file.metadata()?;
        match metadata.len() == self.size && metadata.modified().ok() == self.modified {
            true => Ok(()),
            false => Err(DocumentFault::Changed),
        }
    }
}
