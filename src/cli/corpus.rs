//! The texts of a corpus, one after another and in bounded memory, whatever kind of file they stand in.

use super::input::ReaderArgs;
use super::source::SAMPLES;
use crate::samples::{InputFile, RecordPlace, records};
use anyhow::{Context, Result, anyhow, bail};
use std::io::Read;
use std::iter::from_fn;
use std::path::Path;

/// Maximum number of bytes of a piece of plain text. Pieces four times as large take half as long again, in time and in memory.
const PIECE: usize = 16 << 10;

/// Some editors begin a file with it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A text, or a piece of one.
#[derive(Debug, PartialEq, Eq)]
pub struct Text {
    /// Where it begins.
    pub place: RecordPlace,
    /// Number of bytes of the file that it took.
    pub bytes: u64,
    pub text: String,
}

/// The texts of a file: of one that holds samples, or of standard input, those of the field `text` or `input`; of any other
/// file the pieces of its text. A record may have `limit` bytes.
///
/// # Errors
/// Where the file cannot be opened, or `reader` does not fit it; what cannot be read later is an item of the iterator and names its
/// place.
pub fn open<'a>(
    path: &Path,
    reader: &'a ReaderArgs,
    limit: u64,
) -> Result<Box<dyn Iterator<Item = Result<Text>> + Send + 'a>> {
    let input = InputFile::open(path)?;
    if holds_samples(path, &input, reader) {
        return Ok(Box::new(of_samples(input, reader, limit)?));
    }
    refuse_flags_of_samples(reader)?;
    Ok(Box::new(plain(input)))
}

/// Returns true if a file is said to hold samples, by `reader` or by its extension; false if it is a document.
///
/// # Errors
/// Where the file cannot be read, or `reader` does not fit a document.
pub fn is_file_of_samples(path: &Path, reader: &ReaderArgs) -> Result<bool> {
    // Standard input, or a pipe, can be opened once.
    if is_said_to_hold_samples(path, reader) || holds_samples(path, &InputFile::open(path)?, reader) {
        return Ok(true);
    }
    refuse_flags_of_samples(reader).map(|()| false)
}

fn holds_samples(path: &Path, input: &InputFile, reader: &ReaderArgs) -> bool {
    is_said_to_hold_samples(path, reader) || SAMPLES.contains(&input.extension())
}

fn is_said_to_hold_samples(path: &Path, reader: &ReaderArgs) -> bool {
    reader.has_format() || path == Path::new("-")
}

fn refuse_flags_of_samples(reader: &ReaderArgs) -> Result<()> {
    match reader.flag_of_samples() {
        Some(flag) => bail!("it is read as plain text, which takes no {flag}; say what it is with --input-format"),
        None => Ok(()),
    }
}

fn of_samples(input: InputFile, reader: &ReaderArgs, limit: u64) -> Result<impl Iterator<Item = Result<Text>> + Send> {
    let options = reader.options(Some(limit), false, None);
    let mut read = 0;
    Ok(records(input, &options)?.map(move |record| {
        let record = record?;
        let (place, position) = (record.place, record.position);
        let text = reader.sample(record, &options).map_err(|bad| anyhow!(bad.fault))?.sample.text;
        let bytes = position.saturating_sub(std::mem::replace(&mut read, position));
        Ok(Text { place, bytes, text })
    }))
}

/// Cuts a text into pieces that depend on it alone, not on how it comes.
fn plain(mut reader: impl Read) -> impl Iterator<Item = Result<Text>> {
    let (mut pending, mut line, mut first) = (Vec::new(), 1, true);
    from_fn(move || {
        if let Err(error) = Read::take(&mut reader, (PIECE - pending.len()) as u64).read_to_end(&mut pending) {
            return Some(Err(error).with_context(|| format!("line {line}")));
        }
        if pending.is_empty() {
            return None;
        }
        let rest = pending.split_off(cut(&pending));
        let mut piece = std::mem::replace(&mut pending, rest);
        let bytes = piece.len() as u64;
        if std::mem::take(&mut first) && piece.starts_with(BYTE_ORDER_MARK) {
            piece.drain(..BYTE_ORDER_MARK.len());
        }
        let begins = line;
        line += line_ends(&piece);
        Some(match String::from_utf8(piece) {
            Ok(text) => Ok(Text { place: RecordPlace::Line(begins), bytes, text }),
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                Err(anyhow!("line {}: not UTF-8", begins + line_ends(&error.as_bytes()[..valid])))
            }
        })
    })
}

fn line_ends(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

/// Where a piece of this text ends: after its last line end, or else before its last space (which tokenizers put to the
/// word that follows), or else between two characters. What is shorter than a piece is the end of the text.
fn cut(text: &[u8]) -> usize {
    if text.len() < PIECE {
        return text.len();
    }
    let last = |wanted: &dyn Fn(u8) -> bool| text.iter().rposition(|&byte| wanted(byte)).filter(|&at| at > 0);
    let after_line = last(&|byte| byte == b'\n').map(|at| at + 1);
    // A character's first byte is not one of the form 10xxxxxx.
    let between = || last(&|byte| byte & 0xc0 != 0x80);
    after_line.or_else(|| last(&|byte| byte == b' ')).or_else(between).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn boxed(bytes: &[u8], capacity: usize) -> impl Read + Send + 'static {
        BufReader::with_capacity(capacity, std::io::Cursor::new(bytes.to_vec()))
    }

    fn pieces(bytes: &[u8], capacity: usize) -> Vec<Text> {
        plain(boxed(bytes, capacity)).collect::<Result<_>>().unwrap()
    }

    #[test]
    fn plain_text_is_cut_after_lines_whatever_the_buffer() {
        let lines: String = (0..3_000).map(|i| format!("Line {i} of a text.\n\n")).collect();
        let expected = pieces(lines.as_bytes(), 1 << 20);
        assert_eq!(expected.len(), lines.len().div_ceil(PIECE));
        let mut line = 1;
        for (at, piece) in expected.iter().enumerate() {
            assert_eq!(piece.place, RecordPlace::Line(line));
            line += line_ends(piece.text.as_bytes());
            assert!(piece.text.ends_with('\n') && piece.text.len() <= PIECE);
            // Full but for a part of a line.
            assert!(piece.text.len() > PIECE - 30 || at + 1 == expected.len());
        }
        assert_eq!(expected.iter().map(|piece| piece.text.as_str()).collect::<String>(), lines);
        assert_eq!(expected.iter().map(|piece| piece.bytes).sum::<u64>(), lines.len() as u64);
        for capacity in [1, 7, 4_096, PIECE - 1, PIECE + 1] {
            assert_eq!(pieces(lines.as_bytes(), capacity), expected, "{capacity}");
        }
    }

    #[test]
    fn a_line_longer_than_a_piece_is_cut_before_a_space_or_between_characters() {
        let words = "word ".repeat(PIECE / 4);
        let cut = pieces(words.as_bytes(), 1 << 20);
        assert_eq!(cut.iter().map(|piece| piece.text.as_str()).collect::<String>(), words);
        assert!(cut.iter().skip(1).all(|piece| piece.text.starts_with(" word") && piece.place == RecordPlace::Line(1)));

        // Three bytes a character, which do not divide a piece.
        let wide = "語".repeat(PIECE);
        let cut = pieces(wide.as_bytes(), 1 << 20);
        assert_eq!(cut.iter().map(|piece| piece.text.as_str()).collect::<String>(), wide);
        assert_eq!((cut.len(), cut[0].text.len()), (4, PIECE - 1));
    }

    #[test]
    fn plain_text_begins_after_its_mark_and_is_utf_8() {
        assert_eq!(pieces(b"", 9), []);
        assert_eq!(
            pieces(b"\xef\xbb\xbfa\nb", 9),
            [Text { place: RecordPlace::Line(1), bytes: 6, text: "a\nb".into() }]
        );
        for (before, line) in [(0, 1), (3, 4), (PIECE, PIECE + 1)] {
            let bytes = ["\n".repeat(before).as_bytes(), b"ab\xffc\n"].concat();
            let error = plain(boxed(&bytes, 9)).collect::<Result<Vec<_>>>().unwrap_err();
            assert_eq!(error.to_string(), format!("line {line}: not UTF-8"));
        }
    }

    #[test]
    fn a_fault_names_its_line() {
        let words_in = |text: &str| -> Result<Vec<(RecordPlace, String)>> {
            let input = InputFile::from_reader(boxed(text.as_bytes(), 9), "jsonl").unwrap();
            of_samples(input, &ReaderArgs::default(), 40)?
                .map(|text| text.map(|text| (text.place, text.text)))
                .collect()
        };
        let good = "{\"text\": \"a\"}\n\n{\"input\": \"b\", \"id\": 1}\n";
        assert_eq!(
            words_in(good).unwrap(),
            [(RecordPlace::Line(1), "a".to_owned()), (RecordPlace::Line(3), "b".to_owned())]
        );
        for bad in ["nonsense", "{}", "{\"text\": 1}", &format!("{{\"text\": \"{}\"}}", "x".repeat(40))] {
            let said = format!("{:#}", words_in(&format!("{good}{bad}\n")).unwrap_err());
            assert!(said.starts_with("line 4: "), "{said}");
        }
    }
}
