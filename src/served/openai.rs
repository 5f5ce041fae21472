//! Servers with OpenAI's route for completions that echo prompts with log-probabilities: `POST /v1/completions` with `echo` and `logprobs`.
//!
//! Prompts are token ids where the server takes them. Where it takes texts alone, a text is sent that has these ids here, and the answer
//! counts only if the server's tokens are the same ones. [`openai_opening`] finds out what the server takes.

use super::description::check_version;
use super::dialect::{EchoDialect, LeadingToken};
use super::model_cards::{ModelCards, ServerVersion};
use super::openai_opening::{self, probe_ids};
use super::openai_requests::OpenAiServer;
use super::probed::{PromptQuestion, PromptServer, ServerIdentity};
use super::server::{MAX_SAID, ModelServer, unreached};
use crate::config::ServedKind;
use lm::models::files::digest;
use lm::models::{BatchStats, ModelError};
use lm::tokenizer::Tokenizer;

/// Maximum number of bytes of the list of models: those who sell the use of models have hundreds.
const MAX_CARDS: u64 = 8 << 20;

/// A server of the kind, as it is opened and probed.
pub struct OpenAi(pub OpenAiServer);

impl PromptServer for OpenAi {
    const KIND: ServedKind = ServedKind::Openai;

    fn server(&self) -> &ModelServer {
        &self.0.server
    }

    fn identify(&self) -> Result<ServerIdentity, ModelError> {
        let version = match self.0.server.get_if_there("/version", MAX_SAID)? {
            Some(said) => serde_json::from_slice::<ServerVersion>(&said).ok().map(|said| said.version),
            None => None,
        };
        let version = check_version(version.unwrap_or_else(|| "unstated".to_owned()))?;
        let (root, length) = match self.0.server.get_if_there("/v1/models", MAX_CARDS)? {
            Some(said) => {
                let card = self.0.server.parsed::<ModelCards>(&said)?.find(&self.0.server.name)?;
                (card.root.unwrap_or_default(), card.max_model_len)
            }
            None => (String::new(), None),
        };
        // One token may be generated, and counts.
        let length = length.map(|length| length.saturating_sub(1));
        let context = self.0.context.into_iter().chain(length).min();
        let told = context.map_or("unstated".to_owned(), |context| context.to_string());
        let text = format!("openai {version} {} {root} {told}", self.0.server.name);
        Ok(ServerIdentity { digest: digest(text.as_bytes()), text, version, context })
    }

    fn find_dialect(&self, tokenizer: &Tokenizer, context: Option<usize>) -> Result<Option<EchoDialect>, ModelError> {
        openai_opening::find_dialect(&self.0, tokenizer, context).map(Some)
    }

    fn probe_ids(
        &self,
        most: usize,
        tokenizer: &Tokenizer,
        dialect: Option<EchoDialect>,
    ) -> Result<Vec<u32>, ModelError> {
        let leading = dialect.map_or(LeadingToken::Absent, |dialect| dialect.leading);
        probe_ids(most, tokenizer, leading)
    }

    fn prompt_stats(&self, question: PromptQuestion) -> Result<BatchStats, ModelError> {
        let dialect = question.dialect.ok_or_else(|| unreached("how it is asked is not known"))?;
        self.0.prompt_stats(question, dialect)
    }
}
