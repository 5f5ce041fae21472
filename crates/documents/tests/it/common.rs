//! Files for tests, and everything that is read from them.

use documents::{
    Cut, CutAt, Document, DocumentError, DocumentFault, Passage, PassageTally, ReadLimits, open, open_reader, passages,
};
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;

/// All that comes from some documents.
#[derive(Debug)]
pub struct ReadOutcome {
    pub passages: Vec<Passage>,
    pub tally: PassageTally,
    pub skipped: Vec<(String, String)>,
}

impl ReadOutcome {
    pub fn texts(&self) -> Vec<&str> {
        self.passages.iter().map(|passage| passage.text.as_str()).collect()
    }

    /// Ids of the documents that gave passages, in order.
    pub fn ids(&self) -> Vec<&str> {
        let mut ids: Vec<&str> = self.passages.iter().map(|passage| passage.document.as_str()).collect();
        ids.dedup();
        ids
    }

    /// The reason why a file was skipped.
    pub fn reason(&self, name: &str) -> &str {
        let skipped = self.skipped.iter().find(|(skipped, _)| skipped == name);
        skipped.map_or_else(|| panic!("{name} is not among {:?}", self.skipped), |(_, reason)| reason)
    }
}

pub fn cut(words: usize) -> Cut {
    Cut { words, overlap: 0, at: CutAt::Paragraph }
}

pub fn read_paths(paths: &[&Path], cut: Cut, limits: ReadLimits) -> Result<ReadOutcome, DocumentError> {
    let paths: Vec<PathBuf> = paths.iter().map(|path| path.to_path_buf()).collect();
    outcome(open(&paths, limits)?, cut)
}

pub fn read_path(path: &Path) -> Result<ReadOutcome, DocumentError> {
    read_paths(&[path], cut(128), ReadLimits::default())
}

/// Reads bytes as a file of this name.
pub fn read_bytes(name: &str, bytes: impl Into<Vec<u8>>) -> Result<ReadOutcome, DocumentError> {
    outcome(open_reader(Cursor::new(bytes.into()), name, None, ReadLimits::default())?, cut(128))
}

pub fn fault(result: Result<ReadOutcome, DocumentError>) -> DocumentFault {
    result.expect_err("it cannot be read").fault
}

fn outcome(documents: documents::Documents, cut: Cut) -> Result<ReadOutcome, DocumentError> {
    let mut stream = passages(documents, cut).unwrap();
    let passages = stream.by_ref().collect::<Result<_, _>>()?;
    let skipped = stream.documents().skipped().iter();
    let skipped = skipped.map(|error| (error.name.clone(), error.fault.to_string())).collect();
    Ok(ReadOutcome { passages, tally: *stream.tally(), skipped })
}

/// The passages of a text that comes in chunks of this many characters.
pub fn cut_text(text: &str, cut: Cut, size: usize) -> (Vec<Passage>, PassageTally) {
    let characters: Vec<char> = text.chars().collect();
    let chunks: Vec<String> = characters.chunks(size).map(|chunk| chunk.iter().collect()).collect();
    let mut stream = passages(std::iter::once(Ok(Document::from_chunks("text".to_owned(), chunks))), cut).unwrap();
    let all = stream.by_ref().map(Result::unwrap).collect();
    (all, *stream.tally())
}

/// An archive of these entries.
pub fn zip(entries: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        writer.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

/// A file of a book: its path in the archive and its content.
pub type BookFile<'a> = (&'a str, String);

const CONTAINER: &str = "<?xml version='1.0'?><container version='1.0' xmlns='urn:oasis:names:tc:opendocument:xmlns:container'>\
    <rootfiles><rootfile full-path='OEBPS/book.opf' media-type='application/oebps-package+xml'/></rootfiles></container>";

/// A chapter in XHTML.
pub fn chapter(title: &str, body: &str) -> String {
    format!(
        "<?xml version='1.0' encoding='utf-8'?>\n<html xmlns='http://www.w3.org/1999/xhtml'><head><title>{title}</title>\
         <script src='x.js'/><style>p {{ margin: 0 }}</style></head><body><h1>{title}</h1>{body}</body></html>"
    )
}

/// The package document of a book whose spine has these files, relative to it.
pub fn package(spine: &[&str]) -> String {
    let numbers = 0..spine.len();
    let items: String = numbers
        .clone()
        .map(|number| format!("<item id='c{number}' href='{}' media-type='application/xhtml+xml'/>", spine[number]))
        .collect();
    let references: String = numbers.map(|number| format!("<itemref idref='c{number}'/>")).collect();
    format!(
        "<?xml version='1.0'?><package xmlns='http://www.idpf.org/2007/opf' version='3.0' unique-identifier='id'><metadata \
         xmlns:dc='http://purl.org/dc/elements/1.1/'><dc:title>A Book</dc:title></metadata><manifest>{items}</manifest>\
         <spine>{references}</spine></package>"
    )
}

/// An EPUB of these files beside its container.
pub fn epub(files: &[BookFile<'_>]) -> Vec<u8> {
    let mut entries: Vec<(&str, &[u8])> =
        vec![("mimetype", b"application/epub+zip"), ("META-INF/container.xml", CONTAINER.as_bytes())];
    entries.extend(files.iter().map(|(name, content)| (*name, content.as_bytes())));
    zip(&entries, CompressionMethod::Deflated)
}
