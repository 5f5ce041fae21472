//! Files to documents: which files there are, what kind each is, and its text.

mod archive;
mod directory_end;
mod document;
mod documents;
mod encoding;
mod epub;
mod html;
mod kind;
mod paths;
mod source;

pub use document::Document;
pub use documents::{Documents, open, open_reader};
pub use kind::DocumentKind;
