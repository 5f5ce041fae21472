//! Choosing the token budget of a model that has just been loaded: the one that is known, else by trial.

use std::sync::Arc;

use super::Device;
use super::loaded::{Loaded, Origin};
use crate::engine::calibration::{Choice, Trial};
use crate::engine::memory::largest_batch;
use crate::engine::task::Task;
use crate::engine::{Calibration, ModelSource};

/// The length of the texts that are run, in tokens: that of a paragraph.
const TEXT_TOKENS: usize = 128;

impl Device<'_> {
    /// Sets the budget of a model, if it is one to be measured.
    pub(super) fn choose_budget(&mut self, model: usize) {
        let (room, default) = (self.room(), self.max_batch_tokens);
        let (Some(calibration), Some(loaded)) = (&self.calibration, &mut self.loaded[model]) else { return };
        let source = Arc::clone(loaded.source());
        if source.masked {
            return;
        }
        // A model that comes and goes is measured once, wherever the budgets are kept or are not.
        let known = self.budgets.get(&source.identity).copied().or_else(|| find(calibration, &source.identity));
        let (tokens, origin) = match known {
            Some(tokens) => (tokens, Origin::Remembered),
            None => {
                let choice = try_out(calibration, loaded, room, default);
                (self.trim)();
                if choice.lasts {
                    calibration.known.keep(&source.identity, choice.tokens);
                    self.budgets.insert(Arc::clone(&source.identity), choice.tokens);
                }
                (choice.tokens, Origin::Measured)
            }
        };
        loaded.want(tokens, origin);
    }
}

/// A budget found earlier, unless no trial could have found it.
fn find(calibration: &Calibration, identity: &str) -> Option<usize> {
    let tokens = calibration.known.find(identity)?;
    let tried = calibration.ladder.contains(&tokens);
    if !tried {
        tracing::warn!(tokens, "a remembered batch budget is none of those that are tried; it is measured again");
    }
    tried.then_some(tokens)
}

fn try_out(calibration: &Calibration, loaded: &Loaded, room: u64, default: usize) -> Choice {
    let (source, ladder) = (loaded.source(), &calibration.ladder);
    let most = ladder.last().copied().unwrap_or(default);
    let reach = largest_batch(&*source.activation_bytes, room, most);
    let trial = Trial { ladder, reach, default, time: calibration.time };
    trial.run(|tokens| {
        let texts = texts(source, tokens);
        // Even one text may be too long.
        let fits = texts.iter().map(Task::tokens).sum::<usize>() <= reach;
        fits.then(|| loaded.rehearse(&texts)).flatten()
    })
}

/// Texts of so many tokens together, or what fits of it in whole texts, but one at least. Their ids are spread over the
/// vocabulary, and no text is like another.
fn texts(source: &ModelSource, tokens: usize) -> Vec<Task> {
    let length = source.context.unwrap_or(TEXT_TOKENS).min(TEXT_TOKENS);
    let vocab = source.vocab_size.clamp(1, 1 << 31) as u64;
    // Steps of about the golden section meet no id twice in a long time.
    let id = |position: usize| (position as u64).wrapping_mul(0x9E37_79B1) % vocab;
    let text = |text: usize| (text * length..(text + 1) * length).map(|position| id(position) as u32);
    let count = (tokens / length.max(1)).max(1);
    (0..count).map(|n| Task::Score(text(n).collect())).collect()
}
