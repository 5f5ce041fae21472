//! Reads the little-endian numbers and the strings of a GGUF file.

use super::error::GgufError;

/// Bytes of the longest header that is read: metadata and the list of tensors. Those of the largest vocabularies take 30 MB.
const LONGEST_HEADER: usize = 100_000_000;

/// A position in the header of a file; nothing beyond the end is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cursor<'a> {
    file: &'a [u8],
    position: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(file: &'a [u8]) -> Self {
        Self { file: &file[..file.len().min(LONGEST_HEADER)], position: 0 }
    }

    pub fn position(&self) -> usize {
        self.position
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: u64) -> Result<&'a [u8], GgufError> {
        let count = usize::try_from(count).ok();
        let taken = count.and_then(|count| self.file.get(self.position..)?.get(..count));
        let taken = taken.ok_or_else(|| match self.file.len() {
            LONGEST_HEADER => GgufError::new(format!("the header is longer than {LONGEST_HEADER} bytes")),
            length => GgufError::new(format!("the file is cut off after {length} bytes; download it again")),
        })?;
        self.position += taken.len();
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], GgufError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64)?);
        Ok(array)
    }

    pub fn u32(&mut self) -> Result<u32, GgufError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64, GgufError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A string: its length in bytes, then its text in UTF-8.
    pub fn text(&mut self) -> Result<&'a str, GgufError> {
        let start = self.position;
        let bytes = self.skip_text()?;
        str::from_utf8(bytes).map_err(|error| GgufError::new(format!("the string at byte {start}: {error}")))
    }

    /// The bytes of a string.
    pub fn skip_text(&mut self) -> Result<&'a [u8], GgufError> {
        let length = self.u64()?;
        self.take(length)
    }
}
