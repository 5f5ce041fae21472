//! Files as people have them, books, folders and archives, to documents, and documents to passages.
//!
//! [`open`] gives the documents of paths one at a time, [`open_reader`] those of one file that is already open. [`passages`] cuts
//! them and leaves out what is not the text of an author; [`PassageTally`] counts what was left out, by kind.
//!
//! # Errors and skipped files
//!
//! | fault | in a file that was named | in a file of a folder or an archive |
//! |---|---|---|
//! | not UTF-8, PDF, DOC and other formats, no text | error | skipped and named |
//! | an EPUB with DRM, without a spine, or damaged | error | skipped and named |
//! | no permission, a circle of symbolic links, no regular file | error | skipped and named |
//! | more bytes than [`ReadLimits::entry`] | error | skipped and named |
//! | an archive in an archive, an unsafe name in an archive | | skipped and named |
//! | a hidden file or folder | read | skipped and named |
//! | more bytes or entries than [`ReadLimits`] has for an archive | error | error |
//! | a file that changes while it is read, or cannot be read any more | error | error |
//!
//! A file is checked as a whole before its first chunk is given, so a skipped file has given no passage. An empty file is a document
//! without passages.

#![deny(unsafe_code)]

mod error;
mod limits;

mod clean;
mod read;

mod cut;

mod passages;

pub use clean::DropKind;
pub use cut::{Cut, CutAt, CutFault, MAX_WORDS};
pub use error::{DocumentError, DocumentFault};
pub use limits::ReadLimits;
pub use passages::{DropCount, DroppedCounts, Passage, PassageTally, Passages, passages};
pub use read::{Document, DocumentKind, Documents, open, open_reader};
