//! A cursor over the pickle's bytes that never reads past their end.

/// Why the current instruction failed.
pub type Reason = std::borrow::Cow<'static, str>;

/// Bytes and a position in them.
pub struct PickleReader<'a> {
    bytes: &'a [u8],
    pub position: usize,
}

impl<'a> PickleReader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Returns true if every byte was read.
    pub fn is_at_end(&self) -> bool {
        self.position == self.bytes.len()
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Reason> {
        let taken =
            self.bytes[self.position..].get(..count).ok_or("the pickle ends in the middle of an instruction")?;
        self.position += count;
        Ok(taken)
    }

    /// The next `N` bytes, as for `from_le_bytes`.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Reason> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub fn byte(&mut self) -> Result<u8, Reason> {
        Ok(self.array::<1>()?[0])
    }

    /// A string of the given length.
    pub fn text(&mut self, length: usize) -> Result<&'a str, Reason> {
        std::str::from_utf8(self.take(length)?).map_err(|_| "a string is not UTF-8".into())
    }

    /// A string up to the end of the line.
    pub fn line(&mut self) -> Result<&'a str, Reason> {
        let length = self.bytes[self.position..].iter().position(|&b| b == b'\n').ok_or("a name has no end of line")?;
        let line = self.text(length)?;
        self.position += 1;
        Ok(line)
    }
}
