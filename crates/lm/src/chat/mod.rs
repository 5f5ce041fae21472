//! Conversations, and the chat templates that turn them into text as transformers does.
//!
//! A template comes from the Hub with its model, so it is data of a stranger. Invariants:
//!
//! - a rendering ends: instructions, output and memory are bounded by the fuel of minijinja;
//! - values neither nest nor repeat: fuel does not bound what a list of lists of lists costs as text, nor one that has a long text a
//!   thousand times, and a namespace that holds itself has no end, so a template that could build them is refused before it runs
//!   (`program.rs`);
//! - a text depends on the messages and the template alone: there is no clock.

mod environment;
mod error;
mod json;
mod message;
mod program;
mod python;
mod render;
mod spans;
mod template;
#[cfg(test)]
mod tests;

pub use error::ChatError;
pub use message::{ChatMessage, ChatMessages, MAX_MESSAGES, MessageContent, MessagePart};
pub use render::RenderedChat;
pub use template::{ChatTemplate, TEMPLATE_FILE};
