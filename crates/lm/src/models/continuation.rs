//! Greedy continuation of a sequence of token ids, without a cache of keys and values.
//!
//! One forward pass over a sequence gives the model's first choice behind every position. So a pass over what is there and a
//! *draft* of what may follow tells how far the draft is what greedy decoding writes, and which token it writes instead of the
//! next one: a pass gives one token more than the draft has right (speculative verification, Leviathan, Kalman and Matias 2023,
//! arXiv 2211.17192, with the draft of prompt lookup instead of a smaller model's). The draft is the text that may have been
//! memorized: where it was, one pass gives the whole continuation, and where it was not, each pass gives at least one token.
//! The continuation does not depend on the draft; only the number of passes does. On a GPU, whose sums depend on the shape of the
//! batch in their last bits, this holds but for tokens whose logits are as close as that.

use std::sync::Arc;

/// A sequence to be continued greedily, in one pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GreedyPrompt {
    /// The ids that are continued: at least one.
    pub ids: Arc<[u32]>,
    /// Ids that may follow.
    pub draft: Arc<[u32]>,
    /// The number of ids that are wanted: at least one.
    pub most: usize,
    /// The ids that end a text.
    pub ends: Arc<[u32]>,
}

/// Ids that a model writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Continuation {
    /// The last one is the id that ends the text, if the model ended it.
    pub ids: Vec<u32>,
    pub ended: Ending,
}

/// Reason why a continuation is not longer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// The continuation has the wanted number of ids, or the number that one pass gives.
    #[default]
    Length,
    /// The model ended the text.
    EndToken,
}

impl GreedyPrompt {
    /// The ids of the forward pass: what is continued, and the draft.
    pub fn input(&self) -> Vec<u32> {
        [&*self.ids, &*self.draft].concat()
    }

    /// The continuation by the model's first choices behind the last id and behind each id of the draft.
    pub fn accepted(&self, choices: &[u32]) -> Continuation {
        let mut ids = Vec::new();
        for (place, choice) in choices.iter().enumerate().take(self.most) {
            ids.push(*choice);
            if self.ends.contains(choice) {
                return Continuation { ids, ended: Ending::EndToken };
            }
            if self.draft.get(place) != Some(choice) {
                break;
            }
        }
        Continuation { ids, ended: Ending::Length }
    }
}

/// Maximum number of ids that one pass, or one request to a server, is asked for.
const MOST_PER_PASS: usize = 256;

/// The number of ids that must occur again in the reference for it to be the draft behind them.
const RECENT: usize = 3;

/// The least number of ids of a draft, as far as the reference has them.
const LEAST_DRAFT: usize = 16;

/// A sequence on its way: passes, one after another, until it has the wanted number of ids or the model ends the text.
#[derive(Clone, Debug)]
pub struct GreedyDecoding {
    /// The sequence, followed by the ids that the model wrote so far.
    ids: Vec<u32>,
    /// Length of the sequence alone.
    given: usize,
    /// The text that may follow.
    reference: Arc<[u32]>,
    /// The place in the reference of the id that comes next, as far as that is known.
    place: usize,
    /// True if the last few ids are those of the reference before that place.
    is_aligned: bool,
    /// The largest number of ids of the next draft.
    most_draft: usize,
    wanted: usize,
    ends: Arc<[u32]>,
    ended: Ending,
}

impl GreedyDecoding {
    /// Begins with a sequence, which `reference` may follow.
    pub fn new(ids: &[u32], reference: Arc<[u32]>, wanted: usize, ends: Arc<[u32]>) -> Self {
        Self {
            ids: ids.to_vec(),
            given: ids.len(),
            reference,
            place: 0,
            is_aligned: true,
            most_draft: usize::MAX,
            wanted,
            ends,
            ended: Ending::Length,
        }
    }

    /// The next pass; `None` if the continuation is complete.
    pub fn next_prompt(&self) -> Option<GreedyPrompt> {
        let most = self.wanted.saturating_sub(self.written().len()).min(MOST_PER_PASS);
        if most == 0 || self.ended == Ending::EndToken {
            return None;
        }
        let behind = self.reference.get(self.place..).filter(|_| self.is_aligned).unwrap_or_default();
        // The pass gives one id more than its draft has.
        let draft = &behind[..behind.len().min(self.most_draft).min(most - 1)];
        Some(GreedyPrompt { ids: self.ids.as_slice().into(), draft: draft.into(), most, ends: Arc::clone(&self.ends) })
    }

    /// Adds the result of a pass.
    pub fn add(&mut self, step: &Continuation) {
        let likely = self.place + step.ids.len();
        let is_followed = self.is_aligned && self.reference.get(self.place..likely) == Some(&step.ids);
        self.ids.extend_from_slice(&step.ids);
        self.ended = step.ended;
        let place = if is_followed { Some(likely) } else { self.aligned(likely) };
        (self.place, self.is_aligned) = (place.unwrap_or(likely), place.is_some());
        // A draft that fails costs as much as one that does not.
        self.most_draft = LEAST_DRAFT.max(2 * step.ids.len());
    }

    /// The place in the reference behind the last few ids, of several the one nearest to `likely`.
    fn aligned(&self, likely: usize) -> Option<usize> {
        let recent = self.ids.last_chunk::<RECENT>()?;
        let places = self.reference.array_windows().enumerate().filter(|(_, ids)| *ids == recent);
        places.map(|(start, _)| start + RECENT).min_by_key(|place| place.abs_diff(likely))
    }

    fn written(&self) -> &[u32] {
        &self.ids[self.given..]
    }

    /// The continuation so far.
    pub fn finish(self) -> Continuation {
        Continuation { ids: self.written().to_vec(), ended: self.ended }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prompt(draft: &[u32], most: usize, ends: &[u32]) -> GreedyPrompt {
        GreedyPrompt { ids: [1].into(), draft: draft.into(), most, ends: ends.into() }
    }

    #[test]
    fn a_draft_is_accepted_up_to_its_first_fault() {
        use Ending::{EndToken, Length};
        for (draft, most, ends, choices, ids, ended) in [
            (&[][..], 5, &[][..], &[7][..], &[7][..], Length),
            (&[7, 8, 9], 5, &[], &[7, 8, 9, 4], &[7, 8, 9, 4], Length),
            (&[7, 8, 9], 5, &[], &[7, 5, 9, 4], &[7, 5], Length),
            (&[7, 8, 9], 5, &[], &[6, 8, 9, 4], &[6], Length),
            (&[7, 8, 9], 2, &[], &[7, 8, 9, 4], &[7, 8], Length),
            (&[7, 8, 9], 5, &[8], &[7, 8, 9, 4], &[7, 8], EndToken),
            (&[7, 8, 9], 5, &[3, 5], &[7, 5, 9, 4], &[7, 5], EndToken),
            // Behind a fault nothing counts, so nothing ends there.
            (&[7, 8, 9], 5, &[9], &[7, 5, 9, 4], &[7, 5], Length),
        ] {
            let continuation = prompt(draft, most, ends).accepted(choices);
            assert_eq!(continuation, Continuation { ids: ids.to_vec(), ended }, "{draft:?} {choices:?}");
        }
    }

    /// A model whose first choice behind a sequence is a function of it; counts the passes.
    fn decoded(
        next: impl Fn(&[u32]) -> u32,
        ids: &[u32],
        reference: &[u32],
        wanted: usize,
        ends: &[u32],
    ) -> (Continuation, usize) {
        let mut decoding = GreedyDecoding::new(ids, reference.into(), wanted, ends.into());
        let mut passes = 0;
        while let Some(prompt) = decoding.next_prompt() {
            let input = prompt.input();
            let choices: Vec<u32> = (prompt.ids.len()..=input.len()).map(|length| next(&input[..length])).collect();
            decoding.add(&prompt.accepted(&choices));
            passes += 1;
        }
        (decoding.finish(), passes)
    }

    #[test]
    fn a_memorized_text_takes_one_pass_and_another_one_a_pass_for_each_id() {
        let text: Vec<u32> = (0..60).collect();
        let memorized = |ids: &[u32]| ids.len() as u32;
        let (continuation, passes) = decoded(memorized, &text[..10], &text[10..], 50, &[]);
        assert_eq!((continuation.ids.as_slice(), passes), (&text[10..], 1));
        let (continuation, passes) = decoded(|_| 99, &text[..10], &text[10..], 50, &[]);
        assert_eq!((continuation.ids, passes), (vec![99; 50], 50));
        assert_eq!(decoded(memorized, &text[..10], &text[10..], 0, &[]), (Continuation::default(), 0));
    }

    /// The model writes another word in three places, and leaves out ten words in a fourth.
    #[test]
    fn behind_a_change_the_reference_is_the_draft_again() {
        let reference: Vec<u32> = (100..300).collect();
        let mut text = reference.clone();
        [20, 70, 120].into_iter().for_each(|place| text[place] = 1);
        text.drain(150..160);
        let next = |ids: &[u32]| text[ids.len() - 1];
        let (continuation, passes) = decoded(next, &[0], &reference, text.len(), &[]);
        assert_eq!(continuation.ids, text);
        // Each change costs some passes until three words are the reference's again, and shorter drafts for a while.
        assert!(passes < 30, "{passes}");
    }

    #[test]
    fn of_several_places_the_nearest_is_taken() {
        let reference: Vec<u32> = [[1, 2, 3, 4], [5, 6, 7, 8], [1, 2, 3, 9]].concat();
        let mut decoding = GreedyDecoding::new(&[0], reference.into(), 100, [].into());
        for (ids, draft) in
            [(&[1, 2, 3, 4, 5, 6, 7, 8, 77][..], &[][..]), (&[1, 2, 3], &[9]), (&[55, 5, 6, 7], &[8, 1, 2, 3, 9])]
        {
            decoding.add(&Continuation { ids: ids.to_vec(), ended: Ending::Length });
            assert_eq!(&*decoding.next_prompt().unwrap().draft, draft, "{ids:?}");
        }
    }

    #[test]
    fn a_text_ends_with_the_id_that_ends_it() {
        let text: Vec<u32> = (0..60).collect();
        let (continuation, passes) = decoded(|ids| ids.len() as u32, &text[..10], &text[10..], 50, &[35, 20]);
        assert_eq!((continuation.ids.as_slice(), continuation.ended, passes), (&text[10..=20], Ending::EndToken, 1));
    }

    proptest! {
        /// Whatever the reference is, the continuation is that of one pass for each id, and a pass gives at least one.
        #[test]
        fn the_reference_changes_nothing_but_the_passes(
            factor in 1_u32..20,
            alphabet in 2_u32..7,
            ids in prop::collection::vec(0_u32..7, 1..8),
            reference in prop::collection::vec(0_u32..7, 0..40),
            wanted in 0_usize..40,
            ends in prop::collection::vec(0_u32..12, 0..2),
        ) {
            let next = |ids: &[u32]| ids.iter().fold(factor, |hash, id| (hash * 31 + id + factor) % 9973) % alphabet;
            let (plain, _) = decoded(next, &ids, &[], wanted, &ends);
            let (with_draft, passes) = decoded(next, &ids, &reference, wanted, &ends);
            prop_assert_eq!(&with_draft, &plain);
            prop_assert!(passes <= plain.ids.len());
            // The text itself as the reference takes one pass.
            let (again, passes) = decoded(next, &ids, &plain.ids, wanted, &ends);
            prop_assert_eq!(&again, &plain);
            prop_assert!(passes <= 1);
        }
    }
}
