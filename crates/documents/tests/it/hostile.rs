//! Files of all kinds that were changed at random: they are read or refused, and nothing panics.

use crate::common::{chapter, epub, gzip, package, read_bytes, zip};
use proptest::prelude::*;
use zip::CompressionMethod::{Deflated, Stored};

/// Bytes that are put into a file at some places, which are shares of its length.
fn changes() -> impl Strategy<Value = Vec<(f64, u8)>> {
    prop::collection::vec((0.0..1.0, any::<u8>()), 1..12)
}

fn changed(mut file: Vec<u8>, changes: &[(f64, u8)]) -> Vec<u8> {
    for (share, byte) in changes {
        let place = (file.len() as f64 * share) as usize;
        file[place] = *byte;
    }
    file
}

fn book(package: String) -> Vec<u8> {
    let page = chapter("One", "<p>A page of a book, and its text.</p>");
    epub(&[("OEBPS/a.xhtml", page.clone()), ("OEBPS/b.xhtml", page), ("OEBPS/book.opf", package)])
}

/// Reads a file, and looks at the fault.
fn read(name: &str, bytes: Vec<u8>) {
    match read_bytes(name, bytes) {
        Ok(outcome) => assert!(outcome.skipped.iter().all(|(_, reason)| !reason.is_empty())),
        Err(error) => assert!(error.to_string().starts_with(name)),
    }
}

proptest! {
    #[test]
    fn files_that_were_changed(changes in changes()) {
        let entries: [(&str, &[u8]); 3] = [("a.txt", b"A text."), ("b/c.html", b"<p>A page.</p>"), ("d.md", b"# One\n")];
        for (name, file) in [
            ("a.zip", zip(&entries, Stored)),
            ("a.zip", zip(&entries, Deflated)),
            ("a.epub", book(package(&["a.xhtml", "b.xhtml"]))),
            ("a.gz", gzip(b"A text that is compressed.")),
            ("a.zst", zstd::encode_all(&b"A text that is compressed."[..], 1).unwrap()),
            ("a.html", chapter("One", "<p>A page &amp; its <i>text</i>.</p>").into_bytes()),
        ] {
            read(name, changed(file, &changes));
        }
    }

    #[test]
    fn packages_that_were_changed(changes in changes()) {
        let package = changed(package(&["a.xhtml", "b.xhtml"]).into_bytes(), &changes);
        read("a.epub", book(String::from_utf8_lossy(&package).into_owned()));
    }

    #[test]
    fn bytes_and_tags_at_random(bytes in prop::collection::vec(any::<u8>(), 0..200), tags in "[<>/!?a-p&;'\"= \n-]{0,200}") {
        for name in ["a", "a.txt", "a.html", "a.xhtml", "a.md", "a.epub", "a.zip", "a.gz"] {
            read(name, bytes.clone());
            read(name, tags.clone().into_bytes());
        }
    }
}
