//! Detection of the kind of an input file.

use super::csv_file;
use super::error::ReadError;
use super::input::InputFile;
use super::kind::FileKind;
use super::ndjson::BYTE_ORDER_MARK;
use super::options::ReadOptions;
use super::parquet_file::MAGIC;

/// The kind of a file: as the options say, else by its content where that tells, else by the extension of its name.
///
/// # Errors
/// Where the file is not of that kind, or its text is not UTF-8.
pub fn determine(input: &mut InputFile, options: &ReadOptions) -> Result<FileKind, ReadError> {
    match options.kind {
        Some(FileKind::Parquet) => Ok(FileKind::Parquet),
        Some(kind) => check_encoding(input.peek(MAGIC.len())?).map(|()| kind),
        None => detect(input, options),
    }
}

fn detect(input: &mut InputFile, options: &ReadOptions) -> Result<FileKind, ReadError> {
    let extension = input.extension().to_owned();
    let head = input.peek(MAGIC.len())?;
    if head.starts_with(MAGIC) {
        return Ok(FileKind::Parquet);
    }
    if extension == "parquet" {
        return Err(ReadError::Unfit("not a Parquet file: it does not begin with \"PAR1\"".to_owned()));
    }
    check_encoding(head)?;
    let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    let first = head.trim_ascii_start().first();
    match (first, extension.as_str()) {
        (Some(b'{' | b'['), "csv" | "tsv") => {
            let fault = "line 1: JSON, where the name of the file promises columns; rename it, or use --input-format";
            Err(ReadError::Unfit(fault.to_owned()))
        }
        (_, "csv" | "tsv") => Ok(FileKind::Csv),
        (Some(b'['), _) => Ok(FileKind::Json),
        (_, "jsonl" | "ndjson" | "json") | (Some(b'{') | None, _) => Ok(FileKind::Ndjson),
        _ if csv_file::is_table(head, options) => Ok(FileKind::Csv),
        _ => Ok(FileKind::Ndjson),
    }
}

fn check_encoding(head: &[u8]) -> Result<(), ReadError> {
    match foreign_encoding(head) {
        Some(encoding) => Err(ReadError::Unfit(format!(
            "the file is {encoding}, not UTF-8; convert it (`iconv -f {encoding} -t UTF-8`)"
        ))),
        None => Ok(()),
    }
}

/// The encoding of a text that is not UTF-8, by its byte order mark or by the zero bytes of its first characters.
fn foreign_encoding(head: &[u8]) -> Option<&'static str> {
    match head {
        [0xff, 0xfe, 0, 0, ..] | [_, 0, 0, 0, ..] => Some("UTF-32LE"),
        [0, 0, 0xfe, 0xff, ..] | [0, 0, 0, _, ..] => Some("UTF-32BE"),
        [0xff, 0xfe, ..] | [_, 0, ..] => Some("UTF-16LE"),
        [0xfe, 0xff, ..] | [0, _, ..] => Some("UTF-16BE"),
        _ => None,
    }
}
