//! The records at the end of a ZIP archive, which say how large its directory is before the directory is read.

use std::io::{Read, Result, Seek, SeekFrom};

/// Signature and length of the end of the central directory, without its comment.
const END: ([u8; 4], usize) = (*b"PK\x05\x06", 22);
/// The same of the ZIP64 end of the central directory.
const END64: ([u8; 4], usize) = (*b"PK\x06\x06", 56);
/// The same of its locator.
const LOCATOR: ([u8; 4], usize) = (*b"PK\x06\x07", 20);
/// Maximum number of bytes of the comment of an archive.
const COMMENT: usize = 1 << 16;

/// Numbers that the end of an archive declares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeclaredDirectory {
    pub entries: u64,
    pub bytes: u64,
}

impl DeclaredDirectory {
    /// Reads the largest numbers that any record at the end declares, since a reader may take any of them: a comment may look like a
    /// record. All are 0 where there is none.
    pub fn read(source: &mut (impl Read + Seek)) -> Result<Self> {
        let length = source.seek(SeekFrom::End(0))?;
        let longest = (COMMENT + END.1 + LOCATOR.1 + END64.1) as u64;
        source.seek(SeekFrom::Start(length.saturating_sub(longest)))?;
        let mut tail = Vec::new();
        source.by_ref().take(longest).read_to_end(&mut tail)?;
        let mut declared = Self::default();
        for record in records(&tail, END) {
            declared.add(number(record, 8, 2).max(number(record, 10, 2)), number(record, 12, 4));
        }
        records(&tail, END64).for_each(|record| declared.add_zip64(record));
        for locator in records(&tail, LOCATOR) {
            let mut record = Vec::new();
            source.seek(SeekFrom::Start(number(locator, 8, 8)))?;
            source.by_ref().take(END64.1 as u64).read_to_end(&mut record)?;
            records(&record, END64).take(1).for_each(|record| declared.add_zip64(record));
        }
        source.seek(SeekFrom::Start(0))?;
        Ok(declared)
    }

    fn add_zip64(&mut self, record: &[u8]) {
        self.add(number(record, 24, 8).max(number(record, 32, 8)), number(record, 40, 8));
    }

    fn add(&mut self, entries: u64, bytes: u64) {
        // In the shorter record, all ones say that the number is in the ZIP64 record.
        let bytes = if bytes == u64::from(u32::MAX) { 0 } else { bytes };
        *self = Self { entries: self.entries.max(entries), bytes: self.bytes.max(bytes) };
    }
}

/// Everything that begins with a signature and is long enough.
fn records(bytes: &[u8], (signature, length): ([u8; 4], usize)) -> impl Iterator<Item = &[u8]> {
    bytes.windows(length).filter(move |window| window.starts_with(&signature))
}

/// A number of at most 8 bytes, the lowest first.
fn number(record: &[u8], offset: usize, bytes: usize) -> u64 {
    record.iter().skip(offset).take(bytes).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn end(entries: u16, bytes: u32, comment: &[u8]) -> Vec<u8> {
        let length = u16::try_from(comment.len()).unwrap();
        let parts: [&[u8]; 7] = [
            b"PK\x05\x06\0\0\0\0",
            &entries.to_le_bytes(),
            &entries.to_le_bytes(),
            &bytes.to_le_bytes(),
            &[0; 4],
            &length.to_le_bytes(),
            comment,
        ];
        parts.concat()
    }

    fn end64(entries: u64, bytes: u64) -> Vec<u8> {
        let parts: [&[u8]; 6] =
            [b"PK\x06\x06", &[0; 20], &entries.to_le_bytes(), &entries.to_le_bytes(), &bytes.to_le_bytes(), &[0; 8]];
        parts.concat()
    }

    fn declared(archive: Vec<u8>) -> (u64, u64) {
        let DeclaredDirectory { entries, bytes } = DeclaredDirectory::read(&mut Cursor::new(archive)).unwrap();
        (entries, bytes)
    }

    #[test]
    fn the_end_says_how_large_the_directory_is() {
        assert_eq!(declared(end(3, 200, b"")), (3, 200));
        assert_eq!(declared(end(3, 200, &[b'x'; 65_535])), (3, 200));
        assert_eq!(declared([vec![0; 200_000], end(3, 200, b"")].concat()), (3, 200));
        assert_eq!(declared(b"no archive".to_vec()), (0, 0));
        assert_eq!(declared(Vec::new()), (0, 0));
    }

    #[test]
    fn a_record_in_a_comment_counts() {
        assert_eq!(declared(end(1, 60, &end(50, 9_000, b""))), (50, 9_000));
        assert_eq!(declared(end(50, 9_000, &end(1, 60, b""))), (50, 9_000));
    }

    #[test]
    fn zip64_records_are_found_by_place_and_by_signature() {
        let locator =
            |offset: u64| [b"PK\x06\x07\0\0\0\0".to_vec(), offset.to_le_bytes().to_vec(), vec![1, 0, 0, 0]].concat();
        let near = [end64(5_000_000, 1 << 40), locator(0), end(u16::MAX, u32::MAX, b"")].concat();
        assert_eq!(declared(near), (5_000_000, 1 << 40));
        let far =
            [vec![0; 77], end64(5_000_000, 7), vec![0; 100_000], locator(77), end(u16::MAX, u32::MAX, b"")].concat();
        assert_eq!(declared(far), (5_000_000, 7));
        // A place beyond the end has no record.
        assert_eq!(declared([locator(u64::MAX / 2), end(1, 60, b"")].concat()), (1, 60));
    }
}
