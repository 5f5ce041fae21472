//! A buffered reader whose next bytes can be peeked at.

use std::io::{BufRead, Read, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

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
    use std::io::Cursor;

    /// Gives one byte at a time.
    struct Slow(Cursor<&'static [u8]>);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
            Read::take(&mut self.0, 1).read(buffer)
        }
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
