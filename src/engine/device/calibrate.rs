//! Choosing the token budget of a model that has just been loaded: the one that is known, else by trial.

use std::sync::Arc;

use super::memory::largest_batch;
use super::resident::{BudgetOrigin, ResidentModel};
use super::thread::Device;
use super::trial::{BudgetChoice, Trial};
use crate::engine::failure::Failure;
use crate::engine::request::PassInput;
use crate::engine::settings::SpeedCalibration;
use crate::engine::shared::Shared;
use crate::pool::Model;

/// The length of the texts that are run, in tokens: that of a paragraph.
const TEXT_TOKENS: usize = 128;

impl Device<'_> {
    /// Sets the budget of a model, if it is one to be measured.
    ///
    /// # Errors
    /// Why the device was lost in the trial.
    pub(super) fn choose_budget(&mut self, id: &str) -> Result<(), String> {
        let (room, default) = (self.residents.room(), self.residents.max_batch_tokens);
        let resident = self.residents.models.get_mut(id);
        let (Some(calibration), Some(resident)) = (&self.calibration, resident) else { return Ok(()) };
        let model = Arc::clone(resident.model());
        if model.masked {
            return Ok(());
        }
        let most = calibration.ladder.last().copied().unwrap_or(default);
        let reach = largest_batch(&*model.activation_bytes, room, most);
        // A model that comes and goes is measured again only where there is more memory than before.
        let before = self.budgets.get(&model.identity).filter(|choice| reach <= choice.holds_to);
        let known = before.map(|choice| choice.tokens).or_else(|| find(calibration, &model.identity));
        let (tokens, origin) = match known {
            Some(tokens) => (tokens, BudgetOrigin::Remembered),
            None => {
                let trial = Trial { ladder: &calibration.ladder, reach, default, time: calibration.time };
                let choice = try_out(trial, resident, self.shared)?;
                (self.trim)();
                if choice.lasts() {
                    calibration.known.keep(&model.identity, choice.tokens);
                }
                self.budgets.insert(Arc::clone(&model.identity), choice);
                (choice.tokens, BudgetOrigin::Measured)
            }
        };
        resident.want(tokens, origin);
        Ok(())
    }
}

/// A budget found earlier, unless no trial could have found it.
fn find(calibration: &SpeedCalibration, identity: &str) -> Option<usize> {
    let tokens = calibration.known.find(identity)?;
    let tried = calibration.ladder.contains(&tokens);
    if !tried {
        tracing::warn!(tokens, "a remembered batch budget is none of those that are tried; it is measured again");
    }
    tried.then_some(tokens)
}

/// Runs a trial, which a shutdown ends like a pass that fails.
fn try_out(trial: Trial, resident: &ResidentModel, shared: &Shared) -> Result<BudgetChoice, String> {
    let mut lost = None;
    let choice = trial.run(|tokens| {
        let texts = texts(resident.model(), tokens);
        // Even one text may be too long.
        let fits = texts.iter().map(PassInput::tokens).sum::<usize>() <= trial.reach;
        if !fits || shared.gate.is_closed() {
            return None;
        }
        match resident.rehearse(&texts) {
            Ok(pass) => Some(pass),
            Err(failure) => {
                tracing::warn!(tokens, reason = failure.reason(), "a trial pass failed");
                if let Failure::DeviceLost(reason) = failure {
                    lost = Some(reason);
                }
                None
            }
        }
    });
    lost.map_or(Ok(choice), Err)
}

/// Texts of so many tokens together, or what fits of it in whole texts, but one at least. Their ids are spread over the
/// vocabulary, and no text is like another.
fn texts(model: &Model, tokens: usize) -> Vec<PassInput> {
    let length = model.context.unwrap_or(TEXT_TOKENS).min(TEXT_TOKENS);
    let vocab = model.vocab_size.clamp(1, 1 << 31) as u64;
    // Steps of about the golden section meet no id twice in a long time.
    let id = |position: usize| (position as u64).wrapping_mul(0x9E37_79B1) % vocab;
    let text = |text: usize| (text * length..(text + 1) * length).map(|position| id(position) as u32);
    let count = (tokens / length.max(1)).max(1);
    (0..count).map(|n| PassInput::Score(text(n).collect())).collect()
}
