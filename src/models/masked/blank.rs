//! A token of a text taken out, and what could stand there: the whole vocabulary goes no further than this.

use std::sync::Arc;

/// A place in a sequence of ids whose token is to be guessed from all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blank {
    /// The sequence as it is, special tokens included.
    pub ids: Arc<[u32]>,
    /// The place.
    pub position: usize,
    pub choice: Arc<Choice>,
}

/// What may be put into a blank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The id of the mask, which stands for the token that is to be guessed.
    pub mask: u32,
    /// Whether a token may be put there, by id; one beyond its end may not.
    pub allowed: Arc<[bool]>,
    /// How many tokens to give.
    pub best: usize,
}

/// What a model puts into a blank. Probabilities are over its whole output dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled {
    /// The probability of the token that was taken out.
    pub p_original: f64,
    /// The most probable of the allowed tokens with their probabilities, the largest first, ties by id; never the token that
    /// was taken out.
    pub best: Vec<(u32, f64)>,
}

impl Blank {
    /// The sequence with the mask in place.
    pub(super) fn masked(&self) -> impl Iterator<Item = u32> {
        let at = |(position, id): (usize, &u32)| if position == self.position { self.choice.mask } else { *id };
        self.ids.iter().enumerate().map(at)
    }

    /// Chooses by the logits of the vocabulary at the blank.
    pub(super) fn choose(&self, logits: &[f32]) -> Filled {
        let p = softmax(logits);
        let original = self.ids.get(self.position).map_or(usize::MAX, |id| *id as usize);
        let allowed = |id: &usize| *id != original && self.choice.allowed.get(*id) == Some(&true);
        let mut ids: Vec<usize> = (0..p.len()).filter(allowed).collect();
        let order = |a: &usize, b: &usize| p[*b].total_cmp(&p[*a]).then(a.cmp(b));
        if self.choice.best < ids.len() {
            ids.select_nth_unstable_by(self.choice.best, order);
            ids.truncate(self.choice.best);
        }
        ids.sort_unstable_by(order);
        Filled {
            p_original: p.get(original).copied().unwrap_or(f64::NAN),
            best: ids.into_iter().map(|id| (id as u32, p[id])).collect(),
        }
    }
}

/// In f64: a vocabulary has many small terms.
fn softmax(logits: &[f32]) -> Vec<f64> {
    let most = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let mut p: Vec<f64> = logits.iter().map(|logit| (f64::from(*logit) - most).exp()).collect();
    let sum: f64 = p.iter().sum();
    p.iter_mut().for_each(|p| *p /= sum);
    p
}
