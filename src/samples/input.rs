//! The bytes of a file: opened, decompressed and counted.

use crate::access::RequestMemory;
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{BufRead, Error, ErrorKind, Read, Result, stdin};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use tempfile::NamedTempFile;

/// Copies of a long record while it is read: its bytes in a buffer that grows, its values, its text, and its line of the dataset.
const COPIES: u64 = 5;
/// A record of up to this many bytes takes no memory worth counting.
const FREE_RECORD: usize = 1 << 20;

const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

/// A file or standard input, decompressed where it is compressed.
pub struct InputFile {
    reader: PeekReader<Box<dyn Read + Send>>,
    /// Counts the bytes of the file that were read.
    position: Arc<AtomicU64>,
    size: Option<u64>,
    extension: String,
    compressed: bool,
    /// The file; `None` for other readers.
    file: Option<PathBuf>,
    /// Deleted when this is dropped.
    _temporary: Option<NamedTempFile>,
    memory: RecordMemory,
    /// Bytes of the present record that were read; `None` where the input is not read record by record.
    record: Option<usize>,
}

/// Memory that the request whose body is read holds for its longest record, as long as it lasts.
#[derive(Clone, Debug)]
pub struct RecordMemory {
    /// `None` for what is not the body of a request.
    request: Option<Arc<RequestMemory>>,
    /// Length of a record that takes no more than is held.
    longest: usize,
}

impl RecordMemory {
    fn new(request: Option<Arc<RequestMemory>>) -> Self {
        Self { request, longest: FREE_RECORD }
    }

    /// Lets the request hold what reading a record of `bytes` bytes takes.
    ///
    /// # Errors
    /// [`MemoryRefusal`](crate::access::MemoryRefusal), as an error of reading, where there is no room for it.
    pub(super) fn hold(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.longest {
            let longest = bytes.next_power_of_two();
            if let Some(request) = &self.request {
                request.grow_to((longest as u64).saturating_mul(COPIES)).map_err(Error::other)?;
            }
            self.longest = longest;
        }
        Ok(())
    }
}

impl InputFile {
    /// Opens a file, or standard input for `-`. Compression is recognized by the content.
    ///
    /// # Errors
    /// Where the file cannot be opened or read.
    pub fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Self::from_reader(stdin(), "");
        }
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let input = Self::from_reader(file, &extension(path))?;
        if !metadata.is_file() {
            // A pipe has no size, and is read only once.
            return Ok(input);
        }
        Ok(Self { size: Some(metadata.len()), file: Some(path.to_owned()), ..input })
    }

    /// The bytes of a reader, as of a file with this extension.
    pub fn from_reader(reader: impl Read + Send + 'static, extension: &str) -> Result<Self> {
        let mut reader = PeekReader::new(Box::new(reader) as Box<dyn Read + Send>);
        let position = reader.counter();
        let head = reader.peek(ZSTD.len())?;
        let (gzip, zstd) = (head.starts_with(GZIP), head.starts_with(ZSTD));
        let reader = match (gzip, zstd) {
            (true, _) => PeekReader::new(Box::new(Decoded(MultiGzDecoder::new(reader))) as Box<dyn Read + Send>),
            (_, true) => {
                PeekReader::new(Box::new(Decoded(zstd::Decoder::with_buffer(reader)?)) as Box<dyn Read + Send>)
            }
            _ => reader,
        };
        let compressed = gzip || zstd;
        let (extension, file) = (extension.to_owned(), None);
        Ok(Self {
            reader,
            position,
            size: None,
            extension,
            compressed,
            file,
            _temporary: None,
            memory: RecordMemory::new(None),
            record: None,
        })
    }

    /// A temporary file, which is deleted with this value.
    pub fn temporary(file: NamedTempFile) -> Result<Self> {
        let input = Self::open(file.path())?;
        Ok(Self { _temporary: Some(file), ..input })
    }

    /// The same input with the extension of a name, which tells its kind where its bytes do not.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self { extension: extension(Path::new(name)), ..self }
    }

    /// The same input, which fails where there are more bytes than this, and notes that it did.
    #[must_use]
    pub fn limited(self, limit: u64, over: Arc<AtomicBool>) -> Self {
        let reader = Limited { reader: self.reader, left: limit, over };
        Self { reader: PeekReader::new(Box::new(reader)), ..self }
    }

    /// The same input, whose records take their memory of this request's.
    #[must_use]
    pub fn charged_to(self, memory: &Arc<RequestMemory>) -> Self {
        Self { memory: RecordMemory::new(Some(Arc::clone(memory))), ..self }
    }

    /// Memory of the request that is read, if it is one.
    pub(super) fn memory(&self) -> RecordMemory {
        self.memory.clone()
    }

    /// Begins a record, for which memory is held as it is read.
    pub(super) fn begin_record(&mut self) {
        self.record = Some(0);
    }

    /// Returns the size of the file in bytes, as stored, compressed or not; `None` if it is not known.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// The extension of the file's name without that of its compression, in lower case.
    #[must_use]
    pub fn extension(&self) -> &str {
        &self.extension
    }

    /// Counts the bytes of the file as they are read.
    #[must_use]
    pub fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.position)
    }

    /// The file, where it is one, compressed or not.
    pub(super) fn named_file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The file, where it is one and not compressed.
    pub(super) fn plain_file(&self) -> Option<&Path> {
        self.file.as_deref().filter(|_| !self.compressed)
    }

    /// Returns the next bytes without consuming them: at least `least`, unless the input ends before.
    pub(super) fn peek(&mut self, least: usize) -> Result<&[u8]> {
        self.reader.peek(least)
    }
}

impl Read for InputFile {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let read = self.reader.read(buffer)?;
        if let Some(record) = &mut self.record {
            *record = record.saturating_add(read);
            self.memory.hold(*record)?;
        }
        Ok(read)
    }
}

impl BufRead for InputFile {
    fn fill_buf(&mut self) -> Result<&[u8]> {
        let buffer = self.reader.fill_buf()?;
        if let Some(record) = self.record {
            self.memory.hold(record.saturating_add(buffer.len()))?;
        }
        Ok(buffer)
    }

    fn consume(&mut self, amount: usize) {
        self.record = self.record.map(|record| record.saturating_add(amount));
        self.reader.consume(amount);
    }
}

/// A reader that fails after `left` bytes.
struct Limited<R> {
    reader: R,
    left: u64,
    over: Arc<AtomicBool>,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let read = self.reader.read(buffer)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => {
                self.over.store(true, Relaxed);
                return Err(Error::other("there are more bytes than the limit"));
            }
        }
        Ok(read)
    }
}

/// Says of what cannot be decompressed that it is that.
struct Decoded<D>(D);

impl<D: Read> Read for Decoded<D> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let described = |error: Error| {
            Error::new(
                error.kind(),
                format!("the compressed data are cut off or damaged ({error}); download the file again"),
            )
        };
        self.0
            .read(buffer)
            .map_err(|error| if error.kind() == ErrorKind::Interrupted { error } else { described(error) })
    }
}

fn extension(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let inner = [".gz", ".zst", ".zstd"].into_iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(&name);
    Path::new(inner).extension().unwrap_or_default().to_string_lossy().into_owned()
}

const CAPACITY: usize = 64 << 10;

/// As [`std::io::BufReader`]; it also gives as many bytes as are asked for before they are taken, and counts what is taken.
pub struct PeekReader<R> {
    reader: R,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    taken: Arc<AtomicU64>,
}

impl<R: Read> PeekReader<R> {
    pub fn new(reader: R) -> Self {
        Self { reader, buffer: vec![0; CAPACITY].into(), start: 0, end: 0, taken: Arc::default() }
    }

    /// Counts the bytes that are taken.
    pub fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.taken)
    }

    /// Returns the next bytes without consuming them: at least `least`, or the buffer's size if that is smaller, unless the
    /// input ends before.
    pub fn peek(&mut self, least: usize) -> Result<&[u8]> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        while self.end < least.min(self.buffer.len()) {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(&self.buffer[..self.end])
    }
}

impl<R: Read> Read for PeekReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

impl<R: Read> BufRead for PeekReader<R> {
    fn fill_buf(&mut self) -> Result<&[u8]> {
        if self.start == self.end { self.peek(1) } else { Ok(&self.buffer[self.start..self.end]) }
    }

    fn consume(&mut self, amount: usize) {
        self.start = (self.start + amount).min(self.end);
        self.taken.fetch_add(amount as u64, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{MemoryBudget, MemoryRefusal, Principal};
    use crate::samples::record::ReadError;
    use std::io::Cursor;

    /// Gives one byte at a time.
    struct Slow(Cursor<&'static [u8]>);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
            Read::take(&mut self.0, 1).read(buffer)
        }
    }

    #[test]
    fn records_hold_memory_and_other_bytes_do_not() {
        let budget = MemoryBudget::new(Some(8 * FREE_RECORD as u64), 1);
        let open = || {
            let memory = Arc::new(budget.begin(&Principal::default()));
            InputFile::from_reader(Cursor::new(vec![b'x'; 5 * FREE_RECORD]), "").unwrap().charged_to(&memory)
        };
        // A document of any length, and a table that is copied.
        let mut document = open();
        assert_eq!(std::io::copy(&mut document, &mut std::io::sink()).unwrap(), 5 * FREE_RECORD as u64);
        let mut records = open();
        for _ in 0..5 {
            records.begin_record();
            records.read_exact(&mut vec![0; FREE_RECORD - CAPACITY]).unwrap();
        }
        let mut record = open();
        record.begin_record();
        let refused = std::io::copy(&mut record, &mut std::io::sink()).unwrap_err();
        assert!(matches!(ReadError::from(refused), ReadError::Memory(MemoryRefusal::TooLarge { .. })));
    }

    #[test]
    fn what_was_looked_at_is_read_and_counted_once() {
        let mut reader = PeekReader::new(Slow(Cursor::new(b"abcdef")));
        let counter = reader.counter();
        assert_eq!(reader.peek(4).unwrap(), b"abcd");
        assert_eq!(counter.load(Relaxed), 0);
        let mut first = [0; 2];
        reader.read_exact(&mut first).unwrap();
        assert_eq!((&first, counter.load(Relaxed)), (b"ab", 2));
        assert_eq!(reader.peek(3).unwrap(), b"cde");
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        assert_eq!((rest.as_str(), counter.load(Relaxed)), ("cdef", 6));
        assert_eq!(reader.peek(4).unwrap(), b"");
    }
}
