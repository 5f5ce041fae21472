//! A cursor over the pickle's bytes; nothing it does can read past their end.

/// What went wrong at the current instruction.
pub type Fault = std::borrow::Cow<'static, str>;

/// Bytes and a position in them.
pub struct Reader<'a> {
    bytes: &'a [u8],
    pub at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Whether every byte was read.
    pub fn at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Fault> {
        let taken = self.bytes[self.at..].get(..count).ok_or("the pickle ends in the middle")?;
        self.at += count;
        Ok(taken)
    }

    /// The next `N` bytes, as for `from_le_bytes`.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub fn byte(&mut self) -> Result<u8, Fault> {
        Ok(self.array::<1>()?[0])
    }

    /// A text with its length before it.
    pub fn text(&mut self, length: usize) -> Result<&'a str, Fault> {
        std::str::from_utf8(self.take(length)?).map_err(|_| "a text that is not UTF-8".into())
    }

    /// A text up to the end of the line.
    pub fn line(&mut self) -> Result<&'a str, Fault> {
        let length = self.bytes[self.at..].iter().position(|&b| b == b'\n').ok_or("a name without its end")?;
        let line = self.text(length)?;
        self.at += 1;
        Ok(line)
    }
}
