//! Files of every kind, and what is said of those that are none.

use super::*;
use crate::datasets::{Label, Sample, SampleId};
use flate2::Compression;
use flate2::write::GzEncoder;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

fn options() -> ReadOptions {
    ReadOptions { columns: ColumnNames { labelled: true, ..ColumnNames::default() }, ..ReadOptions::default() }
}

/// The samples of a file of this name, or the first fault.
fn read(name: &str, content: &[u8], options: &ReadOptions) -> Result<Vec<Sample>, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, content).unwrap();
    let input = InputFile::open(&path).unwrap();
    let all = records(input, options).map_err(|error| error.to_string())?;
    all.map(|record| {
        let Record { place, fields, .. } = record.map_err(|error| error.to_string())?;
        let read = fields.and_then(|fields| options.columns.sample(fields).map_err(|bad| bad.fault));
        read.map(|read| read.sample).map_err(|fault| format!("{place}: {fault}"))
    })
    .collect()
}

fn expected() -> Vec<Sample> {
    let sample = |id: &str, text: &str, label| Sample {
        id: Some(SampleId::Text(id.into())),
        text: text.into(),
        label: Some(label),
        ..Sample::default()
    };
    vec![sample("a", "One, two", Label::MEMBER), sample("b", "three", Label::NON_MEMBER)]
}

fn parquet() -> Vec<u8> {
    let schema =
        "message m { optional binary id (UTF8); required binary text; required boolean label; optional int64 more; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut out = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut out, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let bytes = |texts: [&str; 2]| texts.map(|text| ByteArray::from(text.as_bytes().to_vec()));
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(&bytes(["a", "b"]), Some(&[1, 1]), None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(&bytes(["One, two", "three"]), None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<BoolType>().write_batch(&[true, false], None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&[5], Some(&[0, 1]), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    out
}

#[test]
fn files_of_every_kind_hold_the_same_samples() {
    let ndjson = "{\"id\": \"a\", \"text\": \"One, two\", \"label\": 1}\n\n{\"id\": \"b\", \"input\": \"three\", \"label\": \"0\"}\n";
    let array = "[{\"id\": \"a\", \"text\": \"One, two\", \"label\": true},\n {\"id\": \"b\", \"text\": \"three\", \"label\": false} ] ";
    let csv = "id,text,label\na,\"One, two\",member\nb,three,Non-Member\n";
    let tabs = "id\ttext\tlabel\na\tOne, two\t1\nb\tthree\t0.0\n";
    let semicolons = "id; text; label\na;One, two;1\nb;three;0\n";
    let quoted = "\"id\",\"text\",\"label\"\r\n\"a\",\"One, two\",\"1\"\r\n\"b\",\"three\",\"0\"\r\n";
    for (name, content) in [
        ("x.jsonl", ndjson),
        ("x.json", ndjson),
        ("x", ndjson),
        ("x.json", array),
        ("x.jsonl", array),
        ("x.txt", array),
        ("x.csv", csv),
        ("x", csv),
        ("x.tsv", tabs),
        ("x.csv", tabs),
        ("x.txt", semicolons),
        ("x", quoted),
    ] {
        assert_eq!(read(name, content.as_bytes(), &options()).unwrap(), expected(), "{name}: {content}");
        let marked = [b"\xef\xbb\xbf", content.as_bytes()].concat();
        assert_eq!(read(name, &marked, &options()).unwrap(), expected(), "marked {name}: {content}");
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(content.as_bytes()).unwrap();
        assert_eq!(read(&format!("{name}.gz"), &gzip.finish().unwrap(), &options()).unwrap(), expected());
        let zstd = zstd::encode_all(content.as_bytes(), 1).unwrap();
        assert_eq!(read(&format!("{name}.zst"), &zstd, &options()).unwrap(), expected());
    }
    for name in ["x.parquet", "x", "x.jsonl"] {
        assert_eq!(read(name, &parquet(), &options()).unwrap(), expected(), "{name}");
        assert_eq!(read(name, &zstd::encode_all(&*parquet(), 1).unwrap(), &options()).unwrap(), expected());
    }
}

#[test]
fn members_and_non_members_beside_each_other_are_samples() {
    let table = "member;nonmember;more\nOne, two;three;7\nfour;;8\n";
    let sample = |text: &str, label| Sample { text: text.into(), label: Some(label), ..Sample::default() };
    let expected =
        [sample("One, two", Label::MEMBER), sample("three", Label::NON_MEMBER), sample("four", Label::MEMBER)];
    for name in ["x.csv", "x.txt"] {
        assert_eq!(read(name, table.as_bytes(), &options()).unwrap(), expected, "{name}");
    }
    let fault = read("x.csv", b"member,nonmember\na,b\n,\n", &options()).unwrap_err();
    assert_eq!(fault, "line 3: neither `member` nor `nonmember` holds a text");
}

#[test]
fn the_kind_and_the_delimiter_can_be_said() {
    let said = ReadOptions { kind: Some(FileKind::Csv), delimiter: Some(b'#'), ..options() };
    let samples = read("x.jsonl", b"id#text#label\na#One, two#1\nb#three#0\n", &said).unwrap();
    assert_eq!(samples, expected());
}

#[test]
fn what_is_wrong_with_a_file_says_where_and_what_to_do() {
    let limited = ReadOptions { limit: Some(40), ..options() };
    let utf16: Vec<u8> = "{\"text\": 1}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let cut_off = zstd::encode_all(&[b'x'; 999][..], 1).unwrap();
    let long = format!("text\n\"{}\n", "x\n".repeat(99_999));
    for (name, content, words) in [
        ("x.jsonl", &b"{\"text\": \"a\"}\n[1]\n"[..], "line 2: not a JSON object with `text`, but a JSON array"),
        ("x.jsonl", b"{\n  \"text\": \"a\"\n}\n", "line 1: not JSON: an object begins"),
        (
            "x.jsonl",
            b"{\"text\": \"0123456789012345678901234567890123456789\"}",
            "line 1: the line is longer than 40 bytes",
        ),
        ("x.json", b"[{\"text\": \"a\"}, 7]", "element 2: expected an object with `text`"),
        ("x.json", b"[{\"text\": \"a\"}, {\"text\"", "element 2: the file ends in the middle of the array"),
        ("x.json", b"[{\"text\": \"a\"} {\"text\"", "element 2: expected ',' or ']', found '{'"),
        ("x.json", b"[{\"text\": \"a\"}] x", "element 2: something follows the end of the array"),
        ("x.json", b"[{\"text\": \"0123456789012345678901234567890123456789\"}]", "element 1: the element is longer"),
        ("x.csv", b"content,is_member\na,1\n", "columns found: content, is_member; use --text-column content"),
        ("x.csv", b"text\na,1\n", "line 2: 2 fields, where the header has 1"),
        ("x.csv", b"text\n\xff\n", "line 2: not UTF-8"),
        (
            "x.csv",
            b"text,label\na,perhaps\n",
            "line 2: `label`: the label is \"perhaps\"; it must be 0 or 1, true or false",
        ),
        ("x.csv", b"", "columns found: none"),
        ("x.csv", b"{\"text\": \"a\"}", "line 1: JSON, where the name of the file promises columns"),
        ("x.csv", long.as_bytes(), "longer than 40 bytes"),
        ("x.csv", &utf16, "the file is UTF-16LE, not UTF-8; convert it (`iconv -f UTF-16LE -t UTF-8`)"),
        ("x.parquet", b"text\na\n", "not a Parquet file: it does not begin with \"PAR1\""),
        ("x.parquet", b"PAR1 and no more", "not a Parquet file that can be read"),
        ("x.jsonl.zst", &cut_off[..cut_off.len() - 5], "the compressed data are cut off or damaged (incomplete frame)"),
    ] {
        let fault = read(name, content, &limited).unwrap_err();
        assert!(fault.contains(words), "{name}: {fault}");
        println!("{name:12} {fault}");
    }
}

#[test]
fn a_position_is_in_the_bytes_of_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path: PathBuf = directory.path().join("x.jsonl");
    let line = "{\"text\": \"a text\"}\n";
    std::fs::write(&path, line.repeat(3)).unwrap();
    let input = InputFile::open(&path).unwrap();
    assert_eq!(input.size(), Some(3 * line.len() as u64));
    let positions: Vec<u64> = records(input, &options()).unwrap().map(|record| record.unwrap().position).collect();
    assert_eq!(positions, [1, 2, 3].map(|lines| lines * line.len() as u64));
}
