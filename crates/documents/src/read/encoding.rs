//! Bytes to text: UTF-8 in chunks, and what else a text may be.

use crate::error::DocumentFault;
use std::io::Read;

/// Bytes that are read at once.
const CHUNK: u64 = 64 << 10;

/// The first bytes of a file that its encoding is told from.
const SAMPLE: usize = 512;

/// The text of a reader in chunks, without a byte order mark. Characters are never divided. The text ends at the first fault.
pub struct TextChunks<R> {
    reader: R,
    /// The beginning of a character whose end was not read yet.
    pending: Vec<u8>,
    position: u64,
    line: u64,
    is_done: bool,
}

impl<R: Read> TextChunks<R> {
    pub fn new(reader: R) -> Self {
        Self { reader, pending: Vec::new(), position: 0, line: 1, is_done: false }
    }

    fn read(&mut self) -> Result<Option<String>, DocumentFault> {
        let mut bytes = std::mem::take(&mut self.pending);
        let carried = bytes.len();
        self.reader.by_ref().take(CHUNK).read_to_end(&mut bytes)?;
        let is_end = bytes.len() == carried;
        if bytes.is_empty() {
            return Ok(None);
        }
        let mut text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let (valid, length) = (error.utf8_error().valid_up_to(), error.utf8_error().error_len());
                let mut bytes = error.into_bytes();
                if length.is_some() || is_end {
                    let lines = memchr::memchr_iter(b'\n', &bytes[..valid]).count() as u64;
                    let (line, position) = (self.line + lines, self.position + valid as u64);
                    return Err(DocumentFault::NotUtf8 { line, position, byte: bytes[valid] });
                }
                self.pending = bytes.split_off(valid);
                String::from_utf8(bytes).map_err(|_| DocumentFault::Changed)?
            }
        };
        self.line += memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64;
        if self.position == 0 && text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
            self.position = '\u{feff}'.len_utf8() as u64;
        }
        self.position += text.len() as u64;
        Ok(Some(text))
    }
}

impl<R: Read> Iterator for TextChunks<R> {
    type Item = Result<String, DocumentFault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let chunk = self.read().transpose();
        self.is_done = !matches!(chunk, Some(Ok(_)));
        chunk
    }
}

/// Checks the first bytes of a file that is not of a known binary format.
///
/// # Errors
/// If it is UTF-16 or UTF-32, or no text at all.
pub fn check_head(head: &[u8]) -> Result<(), DocumentFault> {
    match foreign_encoding(head) {
        Some(encoding) => Err(DocumentFault::Encoding(encoding)),
        None if is_binary(head) => Err(DocumentFault::Binary),
        None => Ok(()),
    }
}

/// The encoding of a text that is not UTF-8, by its byte order mark or by the zero bytes of its first characters.
fn foreign_encoding(head: &[u8]) -> Option<&'static str> {
    match head {
        [0xff, 0xfe, 0, 0, ..] => return Some("UTF-32LE"),
        [0, 0, 0xfe, 0xff, ..] => return Some("UTF-32BE"),
        [0xff, 0xfe, ..] => return Some("UTF-16LE"),
        [0xfe, 0xff, ..] => return Some("UTF-16BE"),
        _ => {}
    }
    let sample = &head[..head.len().min(SAMPLE) & !3];
    // Share of zeros at each place of the groups of four bytes.
    let zeros = [0, 1, 2, 3].map(|place| {
        let count = sample.iter().skip(place).step_by(4).filter(|&&byte| byte == 0).count();
        count as f64 / (sample.len() / 4).max(1) as f64
    });
    match zeros.map(|share| {
        if share >= 0.6 {
            'z'
        } else if share <= 0.1 {
            'c'
        } else {
            '?'
        }
    }) {
        ['c', 'z', 'z', 'z'] => Some("UTF-32LE"),
        ['z', 'z', 'z', 'c'] => Some("UTF-32BE"),
        ['c', 'z', 'c', 'z'] => Some("UTF-16LE"),
        ['z', 'c', 'z', 'c'] => Some("UTF-16BE"),
        _ => None,
    }
}

/// Returns true for bytes that no text in any encoding has. A text may have a few control characters, zero among them.
fn is_binary(head: &[u8]) -> bool {
    let is_control = |byte: u8| byte == 0x7f || (byte < 0x20 && !b"\t\n\r\x08\x0c\x1a\x1b".contains(&byte));
    let controls = head.iter().filter(|&&byte| is_control(byte)).count();
    let is_utf8 = match std::str::from_utf8(head) {
        Ok(_) => true,
        // The head may end within a character.
        Err(error) => error.error_len().is_none(),
    };
    controls * if is_utf8 { 3 } else { 20 } > head.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> Result<String, DocumentFault> {
        TextChunks::new(bytes).collect()
    }

    #[test]
    fn characters_at_the_ends_of_chunks_stay_whole() {
        for before in (CHUNK as usize - 4)..=(CHUNK as usize + 1) {
            let whole = format!("{}語𝄞é", "a".repeat(before));
            assert_eq!(text(whole.as_bytes()).unwrap(), whole);
        }
        assert_eq!(text(b"").unwrap(), "");
        assert_eq!(text("\u{feff}a\u{feff}".as_bytes()).unwrap(), "a\u{feff}");
    }

    #[test]
    fn the_first_bad_byte_is_named() {
        let fault = |bytes: &[u8]| text(bytes).unwrap_err().to_string();
        assert!(fault(b"caf\xe9 noir").starts_with("line 1: byte 3 of the file is 0xe9, which is not UTF-8"));
        assert!(fault(b"\xef\xbb\xbfa\n\nb\xff").starts_with("line 3: byte 7 of the file is 0xff"));
        let long = [vec![b'\n'; CHUNK as usize * 2], vec![0xe9, b'a']].concat();
        assert!(fault(&long).starts_with("line 131073: byte 131072 of the file is 0xe9"));
        // Cut off within a character.
        assert!(fault(b"ab\xe8\xaa").starts_with("line 1: byte 2 of the file is 0xe8"));
    }

    #[test]
    fn encodings_and_binary_data_are_told_from_text() {
        let utf16 = |text: &str, bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
        let utf32 = |text: &str, bytes: fn(u32) -> [u8; 4]| {
            text.chars().flat_map(|character| bytes(character.into())).collect::<Vec<u8>>()
        };
        let sentence = "A plain sentence.";
        let cases = [
            (utf16(sentence, u16::to_le_bytes), Some("UTF-16LE")),
            (utf16(sentence, u16::to_be_bytes), Some("UTF-16BE")),
            (utf16("\u{feff}語", u16::to_le_bytes), Some("UTF-16LE")),
            (utf16("\u{feff}語", u16::to_be_bytes), Some("UTF-16BE")),
            (utf32(sentence, u32::to_le_bytes), Some("UTF-32LE")),
            (utf32(sentence, u32::to_be_bytes), Some("UTF-32BE")),
            (utf32("\u{feff}語", u32::to_le_bytes), Some("UTF-32LE")),
            (utf32("\u{feff}語", u32::to_be_bytes), Some("UTF-32BE")),
            (sentence.into(), None),
            (b"One\0two.".to_vec(), None),
            (b"".to_vec(), None),
        ];
        for (bytes, expected) in cases {
            assert_eq!(foreign_encoding(&bytes), expected, "{bytes:?}");
        }
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10\x08\x06\0\0\0";
        for (head, expected) in [(&png[..], true), (b"caf\xe9", false), (b"a\0b", false), (b"\0\0\0\0", true)] {
            assert_eq!(is_binary(head), expected, "{head:?}");
        }
        assert!(!is_binary("語".as_bytes()) && !is_binary(&"語".as_bytes()[..2]));
    }
}
