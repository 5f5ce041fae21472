//! Reasons why a conversation has no text.

/// Maximum number of characters of a message that a template raises.
const MAX_MESSAGE: usize = 300;

/// A conversation cannot be rendered. Turns are indices among its messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChatError {
    #[error(
        "the tokenizer has no chat template: neither a file chat_template.jinja nor `chat_template` in tokenizer_config.json"
    )]
    NoTemplate,
    #[error("{file}: {fault}")]
    File { file: &'static str, fault: String },
    #[error("the chat template cannot be used: {0}")]
    Template(String),
    #[error("the chat template refuses the conversation: {0}")]
    Raised(String),
    #[error("the chat template fails: {0}")]
    Failed(String),
    #[error(
        "the chat template asks for the present date (`strftime_now`); the text, and its score, would change every day"
    )]
    Date,
    #[error("the chat template does more work than a conversation of this size may take")]
    Exhausted,
    #[error("the text of the conversation has {bytes} bytes; the limit `limits.text` is {limit}")]
    TooLong { bytes: usize, limit: u64 },
    #[error("no message of the role `assistant` has content; the contents of these are what is scored")]
    NothingToScore,
    #[error(
        "the chat template does not render turns one after another: the text before turn {turn} is no beginning of the whole text"
    )]
    NotAppended { turn: usize },
    #[error(
        "the chat template drops or changes the content of turn {turn}, so that its tokens cannot be told from others"
    )]
    Changed { turn: usize },
    #[error("internal error: {0}")]
    Internal(String),
}

impl ChatError {
    /// The message that the error is about, as its index; `None` if it is about all of them or the template.
    #[must_use]
    pub fn turn(&self) -> Option<usize> {
        match self {
            Self::NotAppended { turn } | Self::Changed { turn } => Some(*turn),
            _ => None,
        }
    }

    /// Returns true if the fault is the template's own, so that every conversation has it.
    #[must_use]
    pub fn is_of_template(&self) -> bool {
        matches!(self, Self::NoTemplate | Self::File { .. } | Self::Template(_))
    }
}

/// The text, cut after [`MAX_MESSAGE`] characters.
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}
