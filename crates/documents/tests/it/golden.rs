//! The passages of the files in `tests/fixtures/shelf`, and of a book in EPUB, are those of `tests/fixtures/passages.ndjson`.
//!
//! `UPDATE_GOLDEN=1 cargo test -p pdr-audit-documents golden` writes that file anew; read the difference before it is committed.

use crate::common::{chapter, epub, package};
use documents::{Cut, CutAt, ReadLimits, open, passages};
use std::fs;
use std::path::{Path, PathBuf};

/// The files of the shelf, with an EPUB and the traps that a repository cannot hold.
fn shelf(folder: &Path) -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/shelf");
    let target = folder.join("shelf");
    fs::create_dir_all(target.join("essays")).unwrap();
    for name in ["clockmaker.txt", "scan.txt", "page.html", "essays/notes.md", "essays/table.txt"] {
        fs::copy(fixtures.join(name), target.join(name)).unwrap();
    }
    let book = epub(&[
        ("OEBPS/1.xhtml", chapter("Harbour", "<p>The ferry left before anyone had counted the sacks.</p>")),
        ("OEBPS/2.xhtml", chapter("Letters", "<p>She wrote: &ldquo;All is well&rdquo;,<br/>and signed it.</p>")),
        ("OEBPS/book.opf", package(&["1.xhtml", "2.xhtml"])),
    ]);
    fs::write(target.join("harbour.epub"), book).unwrap();
    fs::write(target.join("latin.txt"), b"caf\xe9").unwrap();
    fs::write(target.join(".draft.txt"), "hidden").unwrap();
    target
}

#[test]
fn the_shelf_gives_the_golden_passages() {
    let folder = tempfile::tempdir().unwrap();
    let shelf = shelf(folder.path());
    let mut lines = String::new();
    for cut in [
        Cut { words: 24, overlap: 0, at: CutAt::Paragraph },
        Cut { words: 12, overlap: 4, at: CutAt::Sentence },
        Cut { words: 9, overlap: 0, at: CutAt::Word },
    ] {
        let mut stream = passages(open(std::slice::from_ref(&shelf), ReadLimits::default()).unwrap(), cut).unwrap();
        lines += &format!("{}\n", serde_json::to_string(&cut).unwrap());
        for passage in stream.by_ref() {
            lines += &format!("{}\n", serde_json::to_string(&passage.unwrap()).unwrap());
        }
        lines += &format!("{}\n", serde_json::to_string(stream.tally()).unwrap());
        let skipped: Vec<String> = stream.documents().skipped().iter().map(ToString::to_string).collect();
        lines += &format!("{}\n", serde_json::to_string(&skipped).unwrap());
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/passages.ndjson");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, &lines).unwrap();
    }
    let expected = fs::read_to_string(&golden).unwrap();
    for (line, expected) in lines.lines().zip(expected.lines()) {
        assert_eq!(line, expected);
    }
    assert_eq!(lines.len(), expected.len());
}
