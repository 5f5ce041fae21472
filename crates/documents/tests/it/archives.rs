//! Archives, and those that are meant to do harm.

use crate::common::{cut, fault, gzip, read_bytes, zip};
use documents::{DocumentError, DocumentFault, DocumentKind, ReadLimits, open_reader, passages};
use std::io::Cursor;
use zip::CompressionMethod::{Deflated, Stored};

/// Texts, and names that were skipped, each with the reason.
type TextsAndSkipped = (Vec<String>, Vec<(String, String)>);

/// Reads an archive within bounds.
fn read(bytes: Vec<u8>, limits: ReadLimits) -> Result<TextsAndSkipped, DocumentError> {
    let mut stream = passages(open_reader(Cursor::new(bytes), "upload", None, limits)?, cut(128)).unwrap();
    let texts = stream.by_ref().map(|passage| Ok(passage?.text)).collect::<Result<_, DocumentError>>()?;
    let skipped = stream.documents().skipped().iter().map(|error| (error.name.clone(), error.fault.to_string()));
    Ok((texts, skipped.collect()))
}

#[test]
fn entries_are_read_in_the_order_of_their_names() {
    let entries: [(&str, &[u8]); 6] = [
        ("b.txt", b"Second."),
        ("a\\c.md", b"First."),
        ("folder/", b""),
        ("d/e.html", b"<p>Third."),
        ("__MACOSX/b.txt", b"no text of an author"),
        ("f.txt.gz", &gzip(b"Fourth.")),
    ];
    for method in [Stored, Deflated] {
        let outcome = read_bytes("some.zip", zip(&entries, method)).unwrap();
        assert_eq!(outcome.ids(), ["a/c.md", "b.txt", "d/e.html", "f.txt.gz"]);
        assert_eq!(outcome.texts(), ["First.", "Second.", "Third.", "Fourth."]);
        assert_eq!(outcome.skipped.len(), 1);
        assert!(outcome.reason("__MACOSX/b.txt").contains("hidden"));
    }
    let empty = read_bytes("empty.zip", zip(&[], Stored)).unwrap();
    assert_eq!((empty.tally.documents, empty.skipped.len()), (0, 0));
}

#[test]
fn names_that_lead_outside_and_archives_inside_are_skipped() {
    let inner = zip(&[("a.txt", b"Inside.")], Stored);
    let entries: [(&str, &[u8]); 7] = [
        ("../outside.txt", b"a"),
        ("/etc/absolute.txt", b"a"),
        ("c:\\drive.txt", b"a"),
        ("inner.zip", &inner),
        ("inner.txt", &inner),
        ("same.txt", b"One."),
        ("./same.txt", b"Two."),
    ];
    let (texts, skipped) = read(zip(&entries, Deflated), ReadLimits::default()).unwrap();
    assert_eq!(texts.len(), 1);
    let names: Vec<&str> = skipped.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["../outside.txt", "/etc/absolute.txt", "c:\\drive.txt", "./same.txt", "inner.txt", "inner.zip"]);
    assert!(skipped[..3].iter().all(|(_, reason)| reason.contains("leads outside")), "{skipped:?}");
    assert!(skipped[3].1.contains("another entry of this name"));
    assert!(skipped[4..].iter().all(|(_, reason)| reason.contains("archive in an archive")));
}

#[test]
fn bombs_are_bounded_by_what_is_really_decompressed() {
    let zeros = vec![b'a'; 8 << 20];
    let limits = ReadLimits { entry: 1 << 20, archive: 20 << 20, entries: 10 };
    let bomb = zip(&[("a.txt", &zeros), ("b.txt", b"Harmless.")], Deflated);
    assert!(bomb.len() < 100_000);
    let (texts, skipped) = read(bomb, limits).unwrap();
    assert_eq!(texts, ["Harmless."]);
    assert!(skipped[0].1.contains("more than 1048576 bytes"), "{skipped:?}");
    // A directory that says too little: the size is the four bytes at 24 of the central header.
    let mut lying = zip(&[("a.txt", &zeros)], Deflated);
    let central = lying.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    lying[central + 24..central + 28].copy_from_slice(&10u32.to_le_bytes());
    let (texts, skipped) = read(lying, limits).unwrap();
    assert_eq!((texts.len(), skipped.len()), (0, 1));
    // All entries together.
    let limits = ReadLimits { archive: 1_000, ..limits };
    let many: Vec<(String, Vec<u8>)> = (0..9).map(|number| (format!("{number}.txt"), vec![b'a'; 200])).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|(name, content)| (name.as_str(), content.as_slice())).collect();
    assert!(matches!(read(zip(&many, Deflated), limits).unwrap_err().fault, DocumentFault::ArchiveTooLarge(_)));
    let limits = ReadLimits { entries: 8, ..limits };
    assert!(matches!(
        read(zip(&many, Deflated), limits).unwrap_err().fault,
        DocumentFault::TooManyEntries { count: 9, .. }
    ));
    // A single compressed file.
    let error = read(gzip(&zeros), ReadLimits { entry: 1_000, ..limits }).unwrap_err().to_string();
    assert!(error.contains("more than 1000 bytes"), "{error}");
}

#[test]
fn damaged_archives_are_refused_or_their_entries_skipped() {
    let whole = zip(&[("a.txt", b"A text that is stored as it is.")], Stored);
    assert!(matches!(fault(read_bytes("a.zip", &whole[..whole.len() - 30])), DocumentFault::DamagedArchive(_)));
    let mut changed = whole.clone();
    let place = changed.windows(6).position(|bytes| bytes == b"stored").unwrap();
    changed[place] = b'S';
    let outcome = read_bytes("a.zip", changed).unwrap();
    assert!(outcome.passages.is_empty() && outcome.reason("a.txt").contains("checksum"), "{:?}", outcome.skipped);
    let cut_off = &gzip(&b"A longer text, and more of it. ".repeat(99))[..60];
    let error = read_bytes("a.txt.gz", cut_off).unwrap_err().to_string();
    assert!(error.contains("cut off or damaged"), "{error}");
}

#[test]
fn the_kind_of_an_upload_may_be_given() {
    let texts = |bytes: &[u8], kind| {
        let documents = open_reader(Cursor::new(bytes.to_vec()), "upload", kind, ReadLimits::default()).unwrap();
        passages(documents, cut(128)).unwrap().map(|passage| passage.unwrap().text).collect::<Vec<_>>()
    };
    assert_eq!(texts(b"<p>a &amp; b", Some(DocumentKind::Html)), ["a & b"]);
    assert_eq!(texts(b"<p>a &amp; b", None), ["<p>a &amp; b"]);
    assert_eq!(texts(b"---\na: b\n---\nText.", Some(DocumentKind::Markdown)), ["Text."]);
}
