//! The kinds of files, by their first bytes, and by the extension or the media type where bytes do not tell.

use crate::error::DocumentFault;

/// A kind of file that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentKind {
    Text,
    Markdown,
    Html,
    /// HTML in the syntax of XML.
    Xhtml,
    Epub,
    Zip,
}

/// The first bytes of a file, with what follows a byte order mark, white space and comments of XML.
const OPENING: usize = 1024;

impl DocumentKind {
    /// The kind of files with this extension, in lower case; plain text where it tells nothing.
    #[must_use]
    pub fn from_extension(extension: &str) -> Self {
        match extension {
            "md" | "markdown" | "mdown" | "mkd" => Self::Markdown,
            "html" | "htm" => Self::Html,
            "xhtml" | "xht" => Self::Xhtml,
            "epub" => Self::Epub,
            "zip" => Self::Zip,
            _ => Self::Text,
        }
    }

    /// The kind that a media type stands for, whatever its parameters.
    #[must_use]
    pub fn from_media_type(media_type: &str) -> Option<Self> {
        let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        Some(match essence.as_str() {
            "text/plain" => Self::Text,
            "text/markdown" => Self::Markdown,
            "text/html" => Self::Html,
            "application/xhtml+xml" => Self::Xhtml,
            "application/epub+zip" => Self::Epub,
            "application/zip" | "application/x-zip-compressed" => Self::Zip,
            _ => return None,
        })
    }

    /// The kind of text that begins so; `hint` where the bytes do not tell. Bytes that begin as a ZIP file are no text.
    ///
    /// # Errors
    /// For formats that are not read, and where `hint` is a kind of archive.
    pub fn from_text(head: &[u8], hint: Self) -> Result<Self, DocumentFault> {
        if let Some(fault) = refused(head) {
            return Err(fault);
        }
        match (markup(head), hint) {
            (Some(kind), _) => Ok(kind),
            (None, Self::Epub) => Err(DocumentFault::NoZip("an EPUB")),
            (None, Self::Zip) => Err(DocumentFault::NoZip("an archive")),
            (None, hint) => Ok(hint),
        }
    }
}

pub fn is_zip(head: &[u8]) -> bool {
    [&b"PK\x03\x04"[..], b"PK\x05\x06", b"PK\x07\x08"].iter().any(|magic| head.starts_with(magic))
}

/// The fault of a format that is known and not read.
fn refused(head: &[u8]) -> Option<DocumentFault> {
    let begins = |magic: &[u8]| head.starts_with(magic);
    if head.trim_ascii_start().starts_with(b"%PDF-") {
        return Some(DocumentFault::Pdf);
    }
    let packed = match head {
        _ if head.get(257..262) == Some(b"ustar") => Some("a tar archive"),
        _ if begins(b"7z\xbc\xaf\x27\x1c") => Some("a 7z archive"),
        _ if begins(b"Rar!\x1a\x07") => Some("a RAR archive"),
        _ if begins(b"\xfd7zXZ\0") => Some("an xz file"),
        _ if begins(b"BZh") && head.get(4..10) == Some(b"1AY&SY") => Some("a bzip2 file"),
        _ => None,
    };
    if let Some(name) = packed {
        return Some(DocumentFault::Packed(name));
    }
    let name = match head {
        _ if begins(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1") => "a DOC file or another one of an old Office",
        _ if begins(b"{\\rtf") => "an RTF file",
        _ if head.get(60..68) == Some(b"BOOKMOBI") => "a MOBI file",
        _ => return None,
    };
    Some(DocumentFault::Unsupported(name))
}

/// The kind of a document that begins with a tag of HTML.
fn markup(head: &[u8]) -> Option<DocumentKind> {
    let opening = String::from_utf8_lossy(&head[..head.len().min(OPENING)]).to_ascii_lowercase();
    let mut rest = opening.trim_start_matches('\u{feff}').trim_start();
    let is_xml = rest.starts_with("<?xml");
    while rest.starts_with("<?") || rest.starts_with("<!--") {
        let end = if rest.starts_with("<?") { "?>" } else { "-->" };
        rest = rest.split_once(end)?.1.trim_start();
    }
    let is_tag = |name: &str| {
        rest.strip_prefix(name).is_some_and(|rest| rest.starts_with(|next: char| next == '>' || next.is_whitespace()))
    };
    if !["<!doctype html", "<html", "<head", "<body"].into_iter().any(is_tag) {
        return None;
    }
    Some(if is_xml || rest.contains("//dtd xhtml") { DocumentKind::Xhtml } else { DocumentKind::Html })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_tell_before_the_extension() {
        let cases = [
            ("<!DOCTYPE html><p>a", DocumentKind::Text, DocumentKind::Html),
            ("\u{feff}\n<HTML lang=en>", DocumentKind::Markdown, DocumentKind::Html),
            ("<?xml version='1.0'?>\n<!-- a --><html xmlns='x'>", DocumentKind::Text, DocumentKind::Xhtml),
            ("<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.1//EN\">", DocumentKind::Text, DocumentKind::Xhtml),
            ("<htmlish> is no tag", DocumentKind::Text, DocumentKind::Text),
            ("<p>A page without a head", DocumentKind::Html, DocumentKind::Html),
            ("<p>in Markdown", DocumentKind::Markdown, DocumentKind::Markdown),
            ("<!-- an open comment", DocumentKind::Text, DocumentKind::Text),
            ("", DocumentKind::Text, DocumentKind::Text),
        ];
        for (head, hint, expected) in cases {
            assert_eq!(DocumentKind::from_text(head.as_bytes(), hint).unwrap(), expected, "{head}");
        }
    }

    #[test]
    fn formats_that_are_not_read_are_refused_with_advice() {
        let mobi = [&[b'a'; 60][..], b"BOOKMOBI"].concat();
        let tar = [&[b'a'; 257][..], b"ustar\0", &[0; 300]].concat();
        let cases: [(&[u8], DocumentKind, &str); 8] = [
            (&tar, DocumentKind::Text, "a tar archive, which is not opened; unpack it"),
            (b"Rar!\x1a\x07\x01\0", DocumentKind::Zip, "a RAR archive"),
            (b"%PDF-1.7\n", DocumentKind::Text, "pdftotext -layout"),
            (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", DocumentKind::Text, "save it as plain text or EPUB"),
            (b"{\\rtf1\\ansi", DocumentKind::Text, "save it as plain text or EPUB"),
            (&mobi, DocumentKind::Text, "MOBI"),
            (b"no archive", DocumentKind::Epub, "no ZIP file"),
            (b"", DocumentKind::Zip, "no ZIP file"),
        ];
        for (head, hint, expected) in cases {
            let fault = DocumentKind::from_text(head, hint).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        }
    }

    #[test]
    fn media_types_have_parameters() {
        assert_eq!(DocumentKind::from_media_type("Text/HTML; charset=utf-8"), Some(DocumentKind::Html));
        assert_eq!(DocumentKind::from_media_type("application/octet-stream"), None);
    }
}
