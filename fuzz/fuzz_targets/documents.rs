//! Feeds a file to the reader of documents: plain text, Markdown, HTML, EPUB, an archive, plain or compressed; and cuts what it holds.
//!
//! The bits of the first byte choose the kind that is said and the cut; the rest is the file.
//!
//! No panic, memory bounded by the limits and not by what the file announces, passages in order, and a fault that says what is wrong.

#![no_main]

use documents::{Cut, CutAt, DocumentKind, ReadLimits, open_reader, passages};
use libfuzzer_sys::fuzz_target;
use pdr_audit_fuzz::{bound_memory, choice};
use std::io::Cursor;

const LIMITS: ReadLimits = ReadLimits { entry: 1 << 20, archive: 4 << 20, entries: 1_000 };

const KINDS: [Option<DocumentKind>; 6] = [
    None,
    Some(DocumentKind::Text),
    Some(DocumentKind::Markdown),
    Some(DocumentKind::Html),
    Some(DocumentKind::Xhtml),
    Some(DocumentKind::Epub),
];

const UNITS: [CutAt; 3] = [CutAt::Paragraph, CutAt::Sentence, CutAt::Word];

fuzz_target!(init: bound_memory(), |data: &[u8]| {
    let Some((choice, file)) = choice(data) else { return };
    let kind = KINDS[(choice & 0x07) % KINDS.len()];
    let cut = Cut { words: 5, overlap: (choice >> 3) & 0x03, at: UNITS[(choice >> 5) % UNITS.len()] };
    let documents = match open_reader(Cursor::new(file.to_vec()), "file", kind, LIMITS) {
        Ok(documents) => documents,
        Err(error) => return assert!(!error.fault.to_string().is_empty()),
    };
    let mut last = None;
    for passage in passages(documents, cut).expect("the cut is valid") {
        match passage {
            Ok(passage) => {
                let place = (passage.document, passage.offset);
                assert!(!passage.text.is_empty() && passage.length > 0);
                assert!(last.is_none_or(|last| last != place));
                last = Some(place);
            }
            Err(error) => assert!(!error.fault.to_string().is_empty()),
        }
    }
});
