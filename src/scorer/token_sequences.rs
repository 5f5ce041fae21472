//! Sequences of token ids that are scored as they are, for callers that cut texts by tokens.

use super::bound::{Bound, too_large, too_long};
use super::error::ScorerError;
use super::handle::Scorer;
use super::text_error::TextError;
use crate::engine::{Class, Request, Stats};
use lm::tokenizer::Encoded;
use std::sync::Arc;

impl Scorer {
    /// A text in the ids of the first model, or why it has none.
    ///
    /// # Errors
    /// [`ScorerError::Internal`]
    pub async fn encode(
        &self,
        bound: &Arc<Bound>,
        text: Arc<str>,
    ) -> Result<Result<Arc<Encoded>, TextError>, ScorerError> {
        let bound = Arc::clone(bound);
        self.workers.run(move || bound.encode(&text)).await
    }

    /// The statistics of a sequence of ids under the first model, behind interactive work and waiting for room as long as it
    /// takes. Many may run at once, [`IN_FLIGHT`](super::IN_FLIGHT) as a rule.
    pub async fn score_ids_behind(&self, bound: &Bound, ids: &Arc<[u32]>) -> Result<Stats, ScorerError> {
        let model = &bound.models[0];
        let mut request =
            Request::new(model.id(), Arc::clone(&model.identity), Class::Batch, None).asked_by(&self.caller);
        let pass = request.score(ids);
        let request = self.engine.recall(request).await;
        self.engine.submit_when_room(request).await?.wait().await?;
        pass.stats().cloned().ok_or_else(|| ScorerError::Internal("an answered sequence has no statistics".into()))
    }
}

impl Bound {
    /// Describes the fault if `tokens` tokens are too many for the first model; `None` otherwise.
    #[must_use]
    pub fn length_fault(&self, tokens: usize) -> Option<String> {
        (tokens > self.models[0].longest).then(|| too_long(tokens, &self.models[0]))
    }

    fn encode(&self, text: &str) -> Result<Arc<Encoded>, TextError> {
        if let Some(detail) = too_large(text, self.text_limit) {
            return Err(TextError::whole("too_long", format!("the text has {detail}")));
        }
        let encoded = self.encodings.encode(&self.models[0], text);
        encoded.map_err(|error| TextError::whole("untokenizable", error.to_string()))
    }
}
