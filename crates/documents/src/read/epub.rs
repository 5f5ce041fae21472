//! The text of an EPUB: the documents of its spine in order, joined.

use super::html::HtmlText;
use super::source::ByteSource;
use crate::error::DocumentFault;
use crate::limits::ReadLimits;
use quick_xml::events::Event;
use rbook::Epub;
use std::collections::HashSet;
use std::io::{Cursor, Read, Seek, SeekFrom, copy, sink};
use zip::ZipArchive;

/// Bytes of one file of the book, and of the text of the whole book: both are held in memory.
const FILE: u64 = 64 << 20;
const TEXT: u64 = 256 << 20;

/// Bytes of markup that are read for each byte of text that a book may have.
const MARKUP: u64 = 4;

const ENCRYPTION: &str = "META-INF/encryption.xml";

/// Methods that only make fonts unusable outside of the book.
const FONT_OBFUSCATION: [&str; 2] = ["http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"];

/// Media types of documents with text.
const DOCUMENTS: [&str; 3] = ["application/xhtml+xml", "text/html", "application/x-dtbook+xml"];

/// Reads the text of a book.
///
/// # Errors
/// If the book is protected, has no spine, is damaged or too large.
pub fn text(mut archive: ZipArchive<ByteSource>, limits: &ReadLimits) -> Result<String, DocumentFault> {
    check_sizes(&mut archive, limits)?;
    check_protection(&mut archive)?;
    let mut source = archive.into_inner();
    source.seek(SeekFrom::Start(0))?;
    // Only the spine is needed; faults of titles and tables of contents do not matter.
    let book = Epub::options().skip_toc(true).skip_metadata(true).read(source).map_err(damaged)?;
    if book.spine().is_empty() {
        return Err(DocumentFault::NoSpine);
    }
    let (mut text, mut seen, most) = (String::new(), HashSet::new(), limits.entry.min(TEXT));
    let mut read = 0;
    for item in book.spine().iter() {
        let Some(entry) = item.manifest_entry() else {
            return Err(DocumentFault::DamagedEpub(format!(
                "its spine names `{}`, which is no file of it",
                item.idref()
            )));
        };
        // A book that names a file over and over would take forever.
        if !DOCUMENTS.contains(&entry.media_type()) || !seen.insert(item.idref()) {
            continue;
        }
        let page = entry.read_str().map_err(damaged)?;
        // Many entries of the spine may be one file.
        read += page.len() as u64;
        if read > most.saturating_mul(MARKUP) {
            return Err(DocumentFault::TooLarge(most));
        }
        let chapter: String = HtmlText::new(Cursor::new(page.into_bytes()), true).collect::<Result<_, _>>()?;
        if chapter.is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&chapter);
        if text.len() as u64 > most {
            return Err(DocumentFault::TooLarge(most));
        }
    }
    Ok(text)
}

fn damaged(error: impl std::error::Error) -> DocumentFault {
    DocumentFault::DamagedEpub(error.to_string())
}

/// Decompresses every file once, since the book's files are later read into memory as a whole. A file that is stored without
/// compression is no larger than the book.
fn check_sizes(archive: &mut ZipArchive<ByteSource>, limits: &ReadLimits) -> Result<(), DocumentFault> {
    let mut left = limits.archive;
    for index in 0..archive.len() {
        let entry = archive.by_index(index)?;
        if entry.encrypted() {
            return Err(DocumentFault::Encrypted);
        }
        let most = limits.entry.min(FILE);
        if entry.compression() == zip::CompressionMethod::Stored {
            // A stored entry has no more bytes than the archive says.
            if entry.size() > most {
                return Err(DocumentFault::TooLarge(most));
            }
            continue;
        }
        let name = entry.name().map_or_else(|_| String::new(), |name| name.into_owned());
        let size = copy(&mut entry.take(most.min(left) + 1), &mut sink())
            .map_err(|error| DocumentFault::DamagedEpub(format!("`{name}`: {error}")))?;
        if size > most {
            return Err(DocumentFault::TooLarge(most));
        }
        left = left.checked_sub(size).ok_or(DocumentFault::ArchiveTooLarge(*limits))?;
    }
    Ok(())
}

/// Fails if anything but fonts is encrypted.
fn check_protection(archive: &mut ZipArchive<ByteSource>) -> Result<(), DocumentFault> {
    let Some(index) = archive.index_for_name(ENCRYPTION) else { return Ok(()) };
    let mut content = Vec::new();
    archive.by_index(index)?.take(FILE).read_to_end(&mut content)?;
    match protection(&content) {
        Some(method) => Err(DocumentFault::Drm(method)),
        None => Ok(()),
    }
}

/// The first method of encryption that is no obfuscation of fonts, by the content of `META-INF/encryption.xml`.
fn protection(content: &[u8]) -> Option<String> {
    let mut reader = quick_xml::Reader::from_reader(content);
    let (mut data, mut methods) = (0, 0);
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag) | Event::Empty(tag)) => match tag.local_name().as_ref() {
                "EncryptedData" => data += 1,
                "EncryptionMethod" => {
                    // The method of a key stands within the data that it opens, and counts as another method.
                    methods += 1;
                    let algorithm = tag.attributes().flatten().find(|attribute| attribute.key.as_ref() == "Algorithm");
                    let algorithm = algorithm.map(|attribute| attribute.value.into_owned());
                    let algorithm = algorithm.unwrap_or_else(|| "an unnamed method".to_owned());
                    if !FONT_OBFUSCATION.contains(&algorithm.as_str()) {
                        return Some(algorithm);
                    }
                }
                _ => {}
            },
            Ok(Event::Eof) => return (methods < data).then(|| "an unnamed method".to_owned()),
            Ok(_) => {}
            Err(_) => return Some(format!("{ENCRYPTION} cannot be read")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fonts_may_be_encrypted() {
        let data = |method: &str| {
            format!(
                "<encryption xmlns='urn:oasis:names:tc:opendocument:xmlns:container' xmlns:enc='http://www.w3.org/2001/04/xmlenc#'>\
                 <enc:EncryptedData>{method}<enc:CipherData><enc:CipherReference URI='a'/></enc:CipherData></enc:EncryptedData>\
                 </encryption>"
            )
        };
        let method = |name: &str| data(&format!("<enc:EncryptionMethod Algorithm='{name}'/>"));
        let aes = "http://www.w3.org/2001/04/xmlenc#aes128-cbc";
        let cases = [
            (method(FONT_OBFUSCATION[0]), None),
            (method(FONT_OBFUSCATION[1]), None),
            (method(aes), Some(aes)),
            (data(""), Some("an unnamed method")),
            (data("<enc:EncryptionMethod/>"), Some("an unnamed method")),
            ("<encryption/>".to_owned(), None),
            (String::new(), None),
            ("<encryption></x>".to_owned(), Some("META-INF/encryption.xml cannot be read")),
        ];
        for (content, expected) in cases {
            assert_eq!(protection(content.as_bytes()).as_deref(), expected, "{content}");
        }
    }
}
