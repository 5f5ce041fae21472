//! The words of many texts.

use crate::statistics::ngrams::{NgramSets, SeparatingNgram};
use crate::texts::{hash_bytes, words};
use foldhash::{HashMap, HashMapExt};

/// The maximum number of words that are kept of all texts together.
const MOST_WORDS: usize = 16_000_000;

/// The maximum number of words that are kept of a text.
const MOST_TEXT_WORDS: usize = 1000;

/// The number of words that are kept of a text in any case.
const FEWEST_TEXT_WORDS: usize = 16;

/// Words in fewer texts are not spelled out.
pub(super) const SPELLED_TEXTS: u32 = 3;

/// The maximum number of characters of a word that is spelled out.
const MOST_CHARACTERS: usize = 64;

/// The sets of the lower-cased words (Python's `\w+`) of texts, to which texts are added one by one.
///
/// Of each text the first distinct words count, as many as 16 million divided by the number of texts, but at most 1,000
/// and at least 16; [`WordTable::truncated_texts`] counts the texts that have more. A word is known by a hash of 64
/// bits, which two of a million words share with a probability of 3e-8; words in three texts or more are spelled out,
/// by their first 64 characters. Takes 4 bytes for each word of each text and about 40 for each distinct word.
#[derive(Clone, Debug)]
pub struct WordTable {
    most_text_words: usize,
    /// By word.
    words: Vec<Word>,
    /// Of words in [`SPELLED_TEXTS`] texts or more.
    spellings: HashMap<u32, Box<str>>,
    /// The words of each text in order of appearance.
    pub(in crate::statistics) sets: NgramSets,
    truncated_texts: usize,
}

#[derive(Clone, Copy, Debug)]
struct Word {
    /// The number of texts that have it.
    texts: u32,
    /// The number of texts up to the last one that has it.
    seen: usize,
}

impl WordTable {
    /// An empty table for as many texts as `samples`, on which depends how many words are kept of each.
    pub fn new(samples: usize) -> Self {
        Self {
            most_text_words: (MOST_WORDS / samples.max(1)).clamp(FEWEST_TEXT_WORDS, MOST_TEXT_WORDS),
            words: Vec::new(),
            spellings: HashMap::new(),
            sets: NgramSets::new(u32::MAX),
            truncated_texts: 0,
        }
    }

    /// Adds the next text. O(n) in its length.
    pub fn add(&mut self, text: &str) {
        let seen = self.texts() + 1;
        let mut lowercase = String::new();
        let mut ids = Vec::new();
        for word in words(text) {
            lower(word, &mut lowercase);
            let hash = hash_bytes(lowercase.as_bytes());
            if self.sets.known(hash).is_some_and(|id| self.words[id as usize].seen == seen) {
                continue;
            }
            let Some(id) = Some(hash).filter(|_| ids.len() < self.most_text_words).and_then(|hash| self.sets.id(hash))
            else {
                self.truncated_texts += 1;
                break;
            };
            if id as usize == self.words.len() {
                self.words.push(Word { texts: 0, seen });
            }
            let entry = &mut self.words[id as usize];
            *entry = Word { texts: entry.texts + 1, seen };
            if entry.texts == SPELLED_TEXTS {
                self.spellings.insert(id, lowercase.chars().take(MOST_CHARACTERS).collect());
            }
            ids.push(id);
        }
        self.sets.add(ids);
    }

    /// The number of texts.
    pub fn texts(&self) -> usize {
        self.sets.texts()
    }

    /// The number of texts with more distinct words than are kept.
    pub fn truncated_texts(&self) -> usize {
        self.truncated_texts
    }

    /// The words in which the two lists differ most, among those in three texts or more.
    pub(crate) fn separating(&self, labels: &[bool]) -> Vec<SeparatingNgram> {
        self.sets.separating(labels, |word| self.spelling(word).map(str::to_owned))
    }

    /// The spelling of a word; `None` if it is in fewer than three texts.
    pub(super) fn spelling(&self, word: u32) -> Option<&str> {
        self.spellings.get(&word).map(|spelling| &**spelling)
    }
}

/// Writes a word in lower case over `lowercase`.
fn lower(word: &str, lowercase: &mut String) {
    lowercase.clear();
    if word.is_ascii() {
        lowercase.push_str(word);
        lowercase.make_ascii_lowercase();
    } else {
        lowercase.push_str(&word.to_lowercase());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(samples: usize, texts: &[&str]) -> WordTable {
        let mut table = WordTable::new(samples);
        texts.iter().for_each(|text| table.add(text));
        table
    }

    #[test]
    fn a_text_is_a_set_of_lower_cased_words() {
        let table = table(
            4,
            &["The the THE trial", "", "a trial \u{c9}t\u{e9}", "\u{e9}t\u{c9}, Trial; \u{3a3}\u{391}\u{3a3}"],
        );
        assert_eq!(table.sets.iter().collect::<Vec<_>>(), [&[0_u32, 1][..], &[], &[2, 1, 3], &[3, 1, 4]]);
        assert_eq!((table.texts(), table.sets.vocabulary(), table.truncated_texts()), (4, 5, 0));
        assert_eq!(table.words.iter().map(|word| word.texts).collect::<Vec<_>>(), [1, 3, 1, 2, 1]);
        assert_eq!([0, 1, 2, 3, 4, 5].map(|word| table.spelling(word)), [None, Some("trial"), None, None, None, None]);
    }

    #[test]
    fn the_first_words_of_a_long_text_count() {
        let words = |from: usize, to: usize| (from..to).map(|word| format!("w{word}")).collect::<Vec<_>>().join(" ");
        let (fits, long) = (words(0, 16) + " w3", words(0, 17));
        let table = table(10_000_000, &[&fits, &long, &words(16, 20)]);
        assert_eq!(table.sets.iter().map(<[u32]>::len).collect::<Vec<_>>(), [16, 16, 4]);
        assert_eq!((table.truncated_texts(), table.sets.vocabulary()), (1, 20));
        for (samples, most) in [(0, 1000), (800, 1000), (100_000, 160), (588_000, 27), (usize::MAX, 16)] {
            assert_eq!(WordTable::new(samples).most_text_words, most);
        }
    }

    #[test]
    fn a_long_word_is_spelled_in_part() {
        let long = "\u{e9}".repeat(100);
        let table = table(3, &[&*long; 3]);
        assert_eq!(table.spelling(0), Some(&*"\u{e9}".repeat(64)));
    }
}
