//! A genre as data, and the composition of a text from it.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::grammar::{tidy, word_count};
use super::story::{List, Story};

/// The minimum and maximum number of words of a text.
pub const WORDS: (usize, usize) = (26, 95);

/// The maximum deviation of a text from its drawn length.
const TOLERANCE: usize = 1;

/// Typical numbers of words of an opening and of a body sentence.
const OPENING: usize = 18;
const SENTENCE: usize = 14;

/// Drafts per text. Far more than needed: a few drafts in, one usually fits.
const DRAFTS: usize = 200;

/// A kind of text. An opening is followed by any of the body slots, in order, each in one of its shapes.
/// Every body sentence must make sense after the opening alone.
pub struct Genre {
    /// Years between which a text starts.
    pub era: (u32, u32),
    /// Facts determined before the first sentence, in order: key and template.
    pub facts: &'static [(&'static str, &'static str)],
    /// The fillers of this genre.
    pub lists: &'static [List],
    pub opening: &'static [&'static str],
    pub body: &'static [&'static [&'static str]],
}

impl Genre {
    /// Draws a length, then drafts until a text comes close to it.
    ///
    /// Without a drawn length, the lengths would be concentrated around the mean.
    pub fn compose(&self, rng: &mut ChaCha8Rng) -> String {
        let target = rng.random_range(WORDS.0 as u32..=WORDS.1 as u32) as usize;
        let mut best = (usize::MAX, String::new());
        for _ in 0..DRAFTS {
            let text = self.draft(rng, target);
            let words = word_count(&text);
            let outside = if (WORDS.0..=WORDS.1).contains(&words) { 0 } else { WORDS.1 };
            let off = words.abs_diff(target) + outside;
            if off < best.0 {
                best = (off, text);
            }
            if best.0 <= TOLERANCE {
                break;
            }
        }
        best.1
    }

    fn draft(&self, rng: &mut ChaCha8Rng, target: usize) -> String {
        let mut story = Story::new(rng, self.lists, self.era);
        for (key, template) in self.facts {
            story.settle(key, template);
        }
        let shape = story.pick(self.opening);
        let mut raw = story.expand(shape);
        // About as many sentences as the length requires, or one more or fewer: genres differ in sentence length.
        let mut wanted = (target.saturating_sub(OPENING + SENTENCE) + story.below(3 * SENTENCE)) / SENTENCE;
        wanted = wanted.clamp(1, self.body.len());
        for (i, slot) in self.body.iter().enumerate() {
            // Selection sampling: every subset of the required size is equally likely, and the order is kept.
            if story.below(self.body.len() - i) < wanted {
                wanted -= 1;
                let shape = story.pick(slot);
                raw = raw + " " + &story.expand(shape);
            }
        }
        tidy(&raw)
    }
}
