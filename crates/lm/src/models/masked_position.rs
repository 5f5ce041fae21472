//! A masked position of a text and the predictions for it: logits over the vocabulary do not leave [`masked`](super::masked).

use std::sync::Arc;

/// A position in a sequence of ids whose token is predicted from all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaskedPosition {
    /// The original sequence, special tokens included.
    pub ids: Arc<[u32]>,
    /// The index of the position in `ids`.
    pub position: usize,
    pub candidates: Arc<Candidates>,
}

/// The tokens that may be predicted at a masked position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidates {
    /// The id of the mask token, which replaces the token to be predicted.
    pub mask: u32,
    /// True for the ids of candidates; ids beyond the end are not candidates.
    pub allowed: Arc<[bool]>,
    /// The number of predictions to return.
    pub best: usize,
}

/// A model's prediction for a masked position. Probabilities are over its whole output dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled {
    /// The probability of the original token.
    pub p_original: f64,
    /// The most probable candidates with their probabilities, in descending order, ties by ascending id; never the
    /// original token.
    pub best: Vec<(u32, f64)>,
}

impl MaskedPosition {
    /// The ids of the sequence with the mask in place.
    pub fn masked_ids(&self) -> impl Iterator<Item = u32> {
        let masked_id =
            |(position, id): (usize, &u32)| if position == self.position { self.candidates.mask } else { *id };
        self.ids.iter().enumerate().map(masked_id)
    }

    /// Ranks the candidates by the logits of the vocabulary at this position.
    pub fn rank(&self, logits: &[f32]) -> Filled {
        let p = softmax(logits);
        let original = self.ids.get(self.position).map_or(usize::MAX, |id| *id as usize);
        let allowed = |id: &usize| *id != original && self.candidates.allowed.get(*id) == Some(&true);
        let mut ids: Vec<usize> = (0..p.len()).filter(allowed).collect();
        let order = |a: &usize, b: &usize| p[*b].total_cmp(&p[*a]).then(a.cmp(b));
        if self.candidates.best < ids.len() {
            ids.select_nth_unstable_by(self.candidates.best, order);
            ids.truncate(self.candidates.best);
        }
        ids.sort_unstable_by(order);
        Filled {
            p_original: p.get(original).copied().unwrap_or(f64::NAN),
            best: ids.into_iter().map(|id| (id as u32, p[id])).collect(),
        }
    }
}

/// In f64, since a vocabulary has many small terms.
fn softmax(logits: &[f32]) -> Vec<f64> {
    let max = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let mut p: Vec<f64> = logits.iter().map(|logit| (f64::from(*logit) - max).exp()).collect();
    let sum: f64 = p.iter().sum();
    p.iter_mut().for_each(|p| *p /= sum);
    p
}
