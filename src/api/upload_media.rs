//! Media types of uploads.

use super::problem::{Kind, Problem};
use crate::samples::FileKind;
use axum::http::{HeaderMap, HeaderName, header};

/// The media types of files of samples, each with its kind and with what separates its columns where that is given.
const MEDIA: [(&str, Option<FileKind>, Option<u8>); 15] = [
    ("application/x-ndjson", Some(FileKind::Ndjson), None),
    ("application/ndjson", Some(FileKind::Ndjson), None),
    ("application/jsonl", Some(FileKind::Ndjson), None),
    ("application/json", Some(FileKind::Json), None),
    ("text/csv", Some(FileKind::Csv), None),
    ("text/tab-separated-values", Some(FileKind::Csv), Some(b'\t')),
    ("application/vnd.apache.parquet", Some(FileKind::Parquet), None),
    ("text/plain", Some(FileKind::Text), None),
    ("text/markdown", Some(FileKind::Markdown), None),
    ("text/html", Some(FileKind::Html), None),
    ("application/xhtml+xml", Some(FileKind::Html), None),
    ("application/epub+zip", Some(FileKind::Epub), None),
    ("application/zip", Some(FileKind::Zip), None),
    // A browser sends a ZIP file so on some systems.
    ("application/x-zip-compressed", Some(FileKind::Zip), None),
    (ANY, None, None),
];

/// Media type of a file of any kind, which its bytes and its name decide.
const ANY: &str = "application/octet-stream";
/// Media type of PDF, which is refused with advice.
const PDF: &str = "application/pdf";
/// The media type of a form with a file.
const FORM: &str = "multipart/form-data";
/// The kind of file that the headers name, `None` where its bytes and its name tell it; compression is recognized by the content.
pub fn media(headers: &HeaderMap) -> Result<(Option<FileKind>, Option<u8>), Problem> {
    let unsupported = |detail: String| Problem::new(Kind::UnsupportedMediaType, detail);
    if let Some(coding) = header_text(headers, header::CONTENT_ENCODING)
        && !["gzip", "zstd", "identity"].contains(&&*coding)
    {
        return Err(unsupported(format!("the content encoding is `{coding}`; it may be `gzip` or `zstd`")));
    }
    let names = || MEDIA.map(|(name, ..)| name).into_iter().chain([FORM]).collect::<Vec<_>>().join(", ");
    let given = header_text(headers, header::CONTENT_TYPE);
    let given =
        given.ok_or_else(|| unsupported(format!("the header `content-type` is missing; it may be {}", names())))?;
    let name = given.split(';').next().unwrap_or_default().trim();
    if name == PDF {
        return Err(unsupported(format!(
            "the content type is `{PDF}`; extract the text with `pdftotext -layout book.pdf book.txt`, and upload that as `text/plain`"
        )));
    }
    let known = if name == FORM { Some((None, None)) } else { known_media(name) };
    known.ok_or_else(|| unsupported(format!("the content type is `{name}`; it may be {}", names())))
}

pub fn known_media(media_type: &str) -> Option<(Option<FileKind>, Option<u8>)> {
    let name = media_type.split(';').next().unwrap_or_default().trim();
    let known = MEDIA.into_iter().find(|(known, ..)| known.eq_ignore_ascii_case(name));
    known.map(|(_, kind, delimiter)| (kind, delimiter))
}

/// The value of a header in lower case.
fn header_text(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    headers.get(name).map(|value| value.to_str().unwrap_or("unreadable").trim().to_ascii_lowercase())
}

/// Boundary between the parts of a form; `None` if the body is no form.
pub fn boundary(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    if !header_text(headers, header::CONTENT_TYPE).is_some_and(|given| given.starts_with(FORM)) {
        return Ok(None);
    }
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let fault = |error: multer::Error| Problem::new(Kind::UnsupportedMediaType, format!("the content type: {error}"));
    multer::parse_boundary(given).map(Some).map_err(fault)
}
