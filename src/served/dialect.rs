//! Form of the requests to a server of the kind `openai`: the servers of this kind differ in what they accept.

use std::fmt;

/// How a server is asked, found out when a model is opened; all servers of the model are asked in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoDialect {
    pub prompts: PromptForm,
    /// Number of tokens to generate, of which nothing is read: 0, or 1 where that is refused or means something else.
    pub max_tokens: usize,
    /// Maximum number of most probable tokens that it reports.
    pub best: usize,
    pub leading: LeadingToken,
}

/// Form of the prompts of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "kebab-case")]
pub enum PromptForm {
    /// Several lists of token ids.
    IdLists,
    /// One list of token ids.
    Ids,
    /// One text.
    Text,
}

/// The token for the beginning of texts, in the answers of a server that takes texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "kebab-case")]
pub enum LeadingToken {
    /// The server adds none.
    Absent,
    /// It adds the one that the tokenizer adds, and answers about it.
    Reported,
    /// It adds one, and leaves it out of its answers, with the log-probability of the token after it.
    LeftOut,
}

impl fmt::Display for EchoDialect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { prompts, max_tokens, best, leading } = self;
        write!(formatter, "prompts {prompts} max_tokens {max_tokens} best {best} leading token {leading}")
    }
}
