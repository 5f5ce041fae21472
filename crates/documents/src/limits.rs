//! Bounds on what files may hold.

/// Bounds on compressed files and archives. Bytes are counted as they are decompressed; what a directory says is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// Bytes of one compressed file, of the text of an EPUB, or of one entry of an archive.
    pub entry: u64,
    /// Bytes of all entries of an archive.
    pub archive: u64,
    /// Number of entries of an archive.
    pub entries: usize,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { entry: 1 << 30, archive: 8 << 30, entries: 200_000 }
    }
}
