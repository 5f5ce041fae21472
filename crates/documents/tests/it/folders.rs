//! Files, folders and what is skipped in them.

use crate::common::{cut, fault, gzip, read_bytes, read_path, read_paths, zip};
use documents::{DocumentFault, ReadLimits, open, passages};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use zip::CompressionMethod;

fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    path
}

#[test]
fn a_folder_is_read_in_order_and_what_is_no_text_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let files: [(&str, &[u8]); 20] = [
        ("b.txt", b"The second book."),
        ("a/z.md", b"# The first book"),
        ("a.html", b"<p>A page.</p>"),
        ("a/b/c.TXT", b"Deep inside."),
        ("empty.txt", b""),
        ("same.txt", b"THE second\nbook."),
        ("plain.txt.gz", &gzip(b"Compressed text.")),
        ("plain.txt.zst", &zstd::encode_all(&b"More compressed text."[..], 1).unwrap()),
        ("more.zip", &zip(&[("x/one.txt", b"From an archive.")], CompressionMethod::Deflated)),
        ("README", b"No extension at all."),
        ("wrong.txt", b"<!doctype html><title>T</title><p>HTML by its bytes."),
        (".hidden.txt", b"hidden"),
        (".git/config", b"hidden, too"),
        ("image.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10\x08\x06\0\0\0"),
        ("latin.txt", b"caf\xe9"),
        ("wide.txt", b"\xff\xfea\0b\0"),
        ("scan.pdf", b"%PDF-1.4\n"),
        ("old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
        (
            "new.docx",
            &zip(&[("[Content_Types].xml", b"<Types/>"), ("word/document.xml", b"<w/>")], CompressionMethod::Deflated),
        ),
        ("broken.epub", b"PK\x03\x04 cut off"),
    ];
    for (name, content) in files {
        write(root, name, content);
    }
    let outcome = read_path(root).unwrap();
    assert_eq!(
        outcome.ids(),
        [
            "README",
            "a.html",
            "a/b/c.TXT",
            "a/z.md",
            "b.txt",
            "more.zip/x/one.txt",
            "plain.txt.gz",
            "plain.txt.zst",
            "wrong.txt"
        ]
    );
    assert_eq!(outcome.texts()[8], "HTML by its bytes.");
    assert_eq!((outcome.tally.documents, outcome.tally.documents_without_passages), (11, 2));
    assert_eq!(outcome.tally.dropped.repeated.pieces, 1);
    for (name, reason) in [
        (".hidden.txt", "hidden"),
        (".git", "hidden"),
        ("image.png", "binary data"),
        ("latin.txt", "line 1: byte 3 of the file is 0xe9"),
        ("wide.txt", "iconv -f UTF-16LE -t UTF-8"),
        ("scan.pdf", "pdftotext -layout"),
        ("old.doc", "save it as plain text or EPUB"),
        ("new.docx", "save it as plain text or EPUB"),
        ("broken.epub", "download it again"),
    ] {
        assert!(outcome.reason(name).contains(reason), "{name}: {}", outcome.reason(name));
    }
    assert_eq!(outcome.skipped.len(), 9);
}

#[test]
fn what_was_named_and_cannot_be_read_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&str, &[u8], &str); 7] = [
        ("a.txt", b"caf\xe9", "a.txt: line 1: byte 3"),
        ("a.pdf", b"%PDF-1.4\n", "a.pdf: it is a PDF"),
        (
            "a.odt",
            &zip(&[("mimetype", b"application/vnd.oasis.opendocument.text")], CompressionMethod::Stored),
            "save it as plain text or EPUB",
        ),
        ("a.bin", b"\x01\x02\x03\x04", "binary data"),
        ("a.epub", b"", "no ZIP file"),
        ("a.zip", b"text", "no ZIP file"),
        ("a.gz", &gzip(&zip(&[], CompressionMethod::Stored)), "decompress it first"),
    ];
    for (name, content, expected) in cases {
        let path = write(folder.path(), name, content);
        let error = read_path(&path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        let error = read_bytes(name, content).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(read_path(&folder.path().join("absent")).unwrap_err().to_string().contains("absent: "));
    assert!(matches!(fault(read_paths(&[], cut(1), ReadLimits::default())), DocumentFault::NoPath));
    let hidden = write(folder.path(), ".named.txt", "Read by its name.");
    assert_eq!(read_path(&hidden).unwrap().ids(), [".named.txt"]);
}

#[test]
fn ids_of_several_paths_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let one = write(root, "one/a.txt", "The first.");
    write(root, "two/a.txt", "The second.");
    let archive = write(root, "b.zip", zip(&[("a.txt", b"The third.")], CompressionMethod::Stored));
    let read = |paths: &[&Path]| read_paths(paths, cut(128), ReadLimits::default());
    let outcome = read(&[&root.join("two"), &root.join("one/"), &archive]).unwrap();
    assert_eq!(outcome.ids(), ["two/a.txt", "one/a.txt", "b.zip/a.txt"]);
    assert_eq!(read(&[&archive]).unwrap().ids(), ["a.txt"]);
    let error = read(&[&one, &root.join("two/a.txt")]).unwrap_err().to_string();
    assert!(error.contains("two/a.txt: it has the same id as ") && error.contains("one/a.txt"), "{error}");
    assert!(read(&[&one, &one]).is_err());
}

#[cfg(unix)]
#[test]
fn circles_and_special_files_are_skipped() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "a/one.txt", "The first.");
    symlink(root, root.join("a/self")).unwrap();
    symlink(root.join("absent"), root.join("dangling.txt")).unwrap();
    symlink(root.join("a/one.txt"), root.join("linked.txt")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    let outcome = read_path(root).unwrap();
    assert_eq!((outcome.tally.documents, outcome.ids()), (2, vec!["a/one.txt"]));
    assert!(outcome.reason("a/self").contains("circle"));
    assert!(outcome.reason("dangling.txt").contains("No such file"));
    assert!(outcome.reason("socket").contains("neither a file nor a folder"));
    assert!(matches!(fault(read_path(&root.join("socket"))), DocumentFault::NoFile));
}

#[cfg(unix)]
#[test]
fn files_without_permission_are_skipped_or_an_error() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let locked = write(folder.path(), "locked.txt", "Locked.");
    write(folder.path(), "open.txt", "Open.");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&locked).is_ok() {
        println!("SKIPPED: this user may read every file");
        return;
    }
    let outcome = read_path(folder.path()).unwrap();
    assert_eq!(outcome.ids(), ["open.txt"]);
    assert!(outcome.reason("locked.txt").contains("ermission"));
    assert!(matches!(fault(read_path(&locked)), DocumentFault::Io(_)));
}

#[test]
fn a_file_that_changes_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "growing.txt", "One.\n\nTwo.\n");
    let documents = open(&[folder.path().to_owned()], ReadLimits::default()).unwrap();
    let mut documents = documents.peekable();
    // The file is open now.
    assert!(documents.peek().unwrap().is_ok());
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"\nThree.\n").unwrap();
    let mut stream = passages(documents, cut(128)).unwrap();
    let error = stream.by_ref().find_map(Result::err).expect("the file has changed");
    assert_eq!(error.to_string(), "growing.txt: it changed while it was read; read it again once it is complete");
    assert!(stream.next().is_none());
}

#[test]
fn an_archive_that_changes_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path =
        write(folder.path(), "some.zip", zip(&[("a.txt", b"One."), ("b.txt", b"Two.")], CompressionMethod::Stored));
    let mut stream = passages(open(std::slice::from_ref(&path), ReadLimits::default()).unwrap(), cut(128)).unwrap();
    assert_eq!(stream.next().unwrap().unwrap().text, "One.");
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"more").unwrap();
    let error = stream.by_ref().find_map(Result::err).expect("the archive has changed");
    assert!(error.to_string().starts_with("some.zip: it changed"), "{error}");
}

#[test]
fn many_files_are_read_one_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..2_000 {
        write(folder.path(), &format!("{}/{number}.txt", number % 7), format!("Text number {number}."));
    }
    let outcome = read_path(folder.path()).unwrap();
    assert_eq!((outcome.tally.documents, outcome.tally.passages), (2_000, 2_000));
    let ids = outcome.ids();
    assert!(ids.is_sorted());
}

#[test]
#[ignore = "slow: writes 100,000 files"]
fn a_hundred_thousand_files() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..100_000 {
        write(folder.path(), &format!("{}/{number}.txt", number % 100), format!("Text number {number}."));
    }
    assert_eq!(read_path(folder.path()).unwrap().tally.passages, 100_000);
}
