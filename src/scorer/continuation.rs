//! Texts that a model continues greedily: pass after pass, each over what is there and a draft of what may follow.

use super::bound::{Bound, too_long};
use super::error::{ScorerError, TextError};
use super::handle::Scorer;
use crate::engine::{Class, Pass};
use crate::pool::Model;
use lm::models::Continuation;
use lm::models::continuation::GreedyDecoding;
use std::sync::Arc;

impl Scorer {
    /// The ids that greedy decoding under the first model writes behind `ids`: `wanted` of them, or fewer if the model ends the
    /// text. `draft` is what may follow, as the text that was perhaps memorized: the more of it the model writes, the fewer
    /// passes this takes, from one to `wanted`; the result does not depend on it. Each pass is behind interactive work and waits
    /// for room as long as it takes. Dropping the future ends it.
    ///
    /// # Errors
    /// [`ScorerError::Masked`], and [`ScorerError::CannotContinue`] if the model is behind a server that only scores, if there are
    /// no ids to continue, or if all ids but the last wanted one do not fit into the context.
    pub async fn continue_ids(
        &self,
        bound: &Bound,
        ids: &[u32],
        draft: &Arc<[u32]>,
        wanted: usize,
    ) -> Result<Continuation, ScorerError> {
        let model = &bound.models[0];
        let ends = check(model, ids.len(), wanted)?;
        let mut decoding = GreedyDecoding::new(ids, Arc::clone(draft), wanted, ends);
        while let Some(prompt) = decoding.next_prompt() {
            let mut request = self.request(model, Class::Batch, None);
            let pass = request.add(Pass::continue_greedily(prompt));
            self.submit(request).await?.wait().await?;
            let unanswered = || ScorerError::Internal("a prompt of an answered request has no continuation".to_owned());
            decoding.add(pass.continuation().ok_or_else(unanswered)?);
        }
        Ok(decoding.finish())
    }

    /// Checks that the first model can continue `given` ids by `wanted`.
    ///
    /// # Errors
    /// Those of [`Self::continue_ids`].
    pub fn check_continuation(&self, bound: &Bound, given: usize, wanted: usize) -> Result<(), ScorerError> {
        check(&bound.models[0], given, wanted).map(|_| ())
    }

    /// The text of a continuation of `ids` under the first model, as it stands behind theirs and without special tokens.
    pub async fn continuation_text(
        &self,
        bound: &Arc<Bound>,
        ids: &[u32],
        continuation: &Continuation,
    ) -> Result<Result<String, TextError>, ScorerError> {
        let (bound, given, ids) = (Arc::clone(bound), ids.len(), [ids, &continuation.ids].concat());
        let decode = move || bound.models[0].tokenizer.decode_behind(&ids, given);
        let decoded = self.workers.run(decode).await?;
        Ok(decoded.map_err(|error| TextError::whole("undecodable", format!("the continuation: {error}"))))
    }
}

/// The ids that end a text of the model, if it can continue `given` ids by `wanted`.
fn check(model: &Model, given: usize, wanted: usize) -> Result<Arc<[u32]>, ScorerError> {
    let refused = |reason: String| ScorerError::CannotContinue { model: model.id().to_owned(), reason };
    if model.masked {
        return Err(ScorerError::Masked(model.id().to_owned()));
    }
    let ends = model.ends.as_ref().map_err(|reason| refused(reason.clone()))?;
    if given == 0 {
        return Err(refused("it has no tokens to begin with".to_owned()));
    }
    // The last id that is wanted goes through no pass.
    let longest = given.saturating_add(wanted.saturating_sub(1));
    if longest > model.longest {
        return Err(refused(too_long(longest, model)));
    }
    Ok(Arc::clone(ends))
}
