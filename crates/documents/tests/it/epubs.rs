//! Books in EPUB, and those that cannot be read.

use crate::common::{chapter, epub, fault, package, read_bytes};
use documents::DocumentFault;

#[test]
fn chapters_come_in_the_order_of_the_spine() {
    let book = epub(&[
        ("OEBPS/b.xhtml", chapter("Two", "<p>The second &eacute;.</p>")),
        ("OEBPS/a b.xhtml", chapter("One", "<p>The <i>first</i>.</p><p>More<br/>lines.</p>")),
        ("OEBPS/unused.xhtml", chapter("Three", "<p>Not in the spine.</p>")),
        ("OEBPS/book.opf", package(&["a%20b.xhtml", "b.xhtml"])),
    ]);
    for name in ["book.epub", "book.zip", "book"] {
        let outcome = read_bytes(name, book.clone()).unwrap();
        assert_eq!(outcome.texts(), ["One\n\nThe first.\n\nMore\nlines.\n\nTwo\n\nThe second é."]);
        assert_eq!((outcome.ids(), outcome.tally.documents), (vec![name], 1));
    }
}

#[test]
fn fonts_may_be_obfuscated_and_nothing_else_encrypted() {
    let encrypted = |method: &str| {
        epub(&[
            ("OEBPS/a.xhtml", chapter("One", "<p>Text.</p>")),
            ("OEBPS/book.opf", package(&["a.xhtml"])),
            (
                "META-INF/encryption.xml",
                format!(
                    "<encryption><EncryptedData><EncryptionMethod Algorithm='{method}'/></EncryptedData></encryption>"
                ),
            ),
        ])
    };
    assert_eq!(
        read_bytes("a.epub", encrypted("http://www.idpf.org/2008/embedding")).unwrap().texts(),
        ["One\n\nText."]
    );
    let fault = fault(read_bytes("a.epub", encrypted("http://www.w3.org/2001/04/xmlenc#aes256-cbc")));
    assert!(matches!(&fault, DocumentFault::Drm(method) if method.contains("aes256")), "{fault}");
}

#[test]
fn books_that_are_not_whole_are_refused() {
    let page = ("OEBPS/a.xhtml", chapter("One", "<p>Text.</p>"));
    assert!(matches!(fault(read_bytes("a.epub", epub(&[("OEBPS/book.opf", package(&[]))]))), DocumentFault::NoSpine));
    let without = package(&["a.xhtml"]).replace("<spine>", "<!--").replace("</spine>", "-->");
    assert!(matches!(
        fault(read_bytes("a.epub", epub(&[page.clone(), ("OEBPS/book.opf", without)]))),
        DocumentFault::NoSpine
    ));
    let dangling = package(&["a.xhtml"]).replace("idref='c0'", "idref='c7'");
    for files in [
        vec![page.clone()],
        vec![("OEBPS/book.opf", package(&["absent.xhtml"]))],
        vec![page.clone(), ("OEBPS/book.opf", dangling)],
        vec![page.clone(), ("OEBPS/book.opf", "<package><spine".to_owned())],
    ] {
        let fault = fault(read_bytes("a.epub", epub(&files)));
        assert!(matches!(fault, DocumentFault::DamagedEpub(_)), "{fault}");
    }
}

#[test]
fn a_book_of_ten_thousand_files() {
    let names: Vec<String> = (0..10_000).map(|number| format!("c{number}.xhtml")).collect();
    let mut files: Vec<(String, String)> = names
        .iter()
        .enumerate()
        .map(|(number, name)| (format!("OEBPS/{name}"), format!("<html><body><p>Chapter {number}.</p></body></html>")))
        .collect();
    let spine: Vec<&str> = names.iter().map(String::as_str).collect();
    files.push(("OEBPS/book.opf".to_owned(), package(&spine)));
    let files: Vec<(&str, String)> = files.iter().map(|(name, content)| (name.as_str(), content.clone())).collect();
    let outcome = read_bytes("a.epub", epub(&files)).unwrap();
    assert_eq!((outcome.tally.documents, outcome.tally.words), (1, 20_000));
}

#[test]
fn a_bomb_in_a_book_is_bounded() {
    let zeros = " ".repeat(80 << 20);
    let book = epub(&[("OEBPS/a.xhtml", zeros), ("OEBPS/book.opf", package(&["a.xhtml"]))]);
    assert!(book.len() < 1 << 20);
    assert!(matches!(fault(read_bytes("a.epub", book)), DocumentFault::TooLarge(_)));
}

#[test]
fn a_file_that_the_spine_names_often_is_read_once() {
    let package = package(&["a.xhtml"]).replace("<itemref idref='c0'/>", &"<itemref idref='c0'/>".repeat(50_000));
    let book = epub(&[("OEBPS/a.xhtml", chapter("One", "<p>Text.</p>")), ("OEBPS/book.opf", package)]);
    assert_eq!(read_bytes("a.epub", book).unwrap().texts(), ["One\n\nText."]);
}
