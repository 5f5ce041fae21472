//! An invented-English corpus for the demo model.
//!
//! Every text is an independent draw: first a genre, then a text of it. Names, dates and quantities occur in nearly
//! every sentence, so that a model can know them only by having seen that very text.

mod auctions;
mod biography;
mod bugs;
mod bulletins;
mod clock;
mod events;
mod experiments;
mod gardening;
mod genre;
mod grammar;
mod letters;
mod minutes;
mod names;
mod products;
mod recipes;
mod sports;
mod story;
mod things;
mod travel;
mod words;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use genre::Genre;

const GENRES: &[&Genre] = &[
    &auctions::GENRE,
    &biography::GENRE,
    &bugs::GENRE,
    &bulletins::GENRE,
    &events::GENRE,
    &experiments::GENRE,
    &gardening::GENRE,
    &letters::GENRE,
    &minutes::GENRE,
    &products::GENRE,
    &recipes::GENRE,
    &sports::GENRE,
    &travel::GENRE,
];

/// Draws texts; the same seed gives the same texts on every machine.
pub struct Generator {
    rng: ChaCha8Rng,
}

impl Generator {
    /// A generator whose texts depend on `seed` alone.
    pub fn new(seed: u64) -> Self {
        Self { rng: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// The next text.
    pub fn next_text(&mut self) -> Drawn {
        let kind = self.rng.random_range(0..GENRES.len() as u32) as usize;
        Drawn { kind, text: GENRES[kind].compose(&mut self.rng) }
    }
}

/// A text and its kind.
pub struct Drawn {
    /// Number of the genre.
    pub kind: usize,
    /// One paragraph of 26 to 95 words in plain ASCII.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::Generator;
    use super::genre::WORDS;
    use super::grammar::{takes_an, word_count};

    const TEXTS: usize = 2000;

    fn texts(seed: u64) -> Vec<String> {
        let mut generator = Generator::new(seed);
        (0..TEXTS).map(|_| generator.next_text().text).collect()
    }

    /// The sentences of a text that are long enough for their repetition to matter.
    fn long_sentences(text: &str) -> BTreeSet<String> {
        let marked = text.replace("! ", ". ").replace("? ", ". ");
        marked.split(". ").filter(|sentence| word_count(sentence) >= 5).map(str::to_string).collect()
    }

    #[test]
    fn texts_are_one_clean_paragraph() {
        for text in texts(1) {
            assert!((WORDS.0..=WORDS.1).contains(&word_count(&text)), "length: {text}");
            assert!(text.bytes().all(|b| b == b' ' || b.is_ascii_graphic()), "plain ASCII: {text}");
            assert!(!text.contains("  "), "double space: {text}");
            assert!(text.starts_with(|c: char| c.is_ascii_uppercase()), "start: {text}");
            assert!(text.ends_with(['.', '!', '?', '"']), "end: {text}");
        }
    }

    #[test]
    fn no_template_syntax_is_left() {
        for text in texts(2) {
            assert!(!text.contains(['{', '}', '[', ']', '|', '@', '=']), "{text}");
            assert!(![" .", " ,", "..", ",,", ",."].iter().any(|slip| text.contains(slip)), "{text}");
        }
    }

    #[test]
    fn articles_agree_with_the_next_word() {
        for text in texts(3) {
            let words: Vec<&str> = text.split_whitespace().collect();
            for pair in words.windows(2) {
                let next = pair[1];
                match pair[0].to_ascii_lowercase().as_str() {
                    "a" => assert!(!takes_an(next), "a {next}: {text}"),
                    "an" => assert!(takes_an(next), "an {next}: {text}"),
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn article_exceptions_are_known() {
        assert!(["apple", "8", "80", "11", "18,000", "hour", "umbrella", "indigo"].into_iter().all(takes_an));
        assert!(
            ["one", "used", "uniform", "unicorn", "1", "110", "180", "house"].into_iter().all(|word| !takes_an(word))
        );
    }

    #[test]
    fn lengths_spread_over_the_range() {
        let lengths: Vec<usize> = texts(4).iter().map(|text| word_count(text)).collect();
        for low in [30, 40, 50, 60, 70, 80] {
            let share = lengths.iter().filter(|&&n| (low..low + 10).contains(&n)).count();
            assert!(share > TEXTS / 20, "{share} texts of {low} to {} words", low + 9);
        }
    }

    #[test]
    fn the_seed_fixes_the_texts() {
        let first = texts(5);
        assert_eq!(first, texts(5));
        assert_ne!(first, texts(6));
    }

    #[test]
    fn texts_rarely_share_a_sentence() {
        let texts = texts(7);
        assert_eq!(texts.iter().collect::<BTreeSet<_>>().len(), texts.len());
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for sentence in texts.iter().flat_map(|text| long_sentences(text)) {
            *seen.entry(sentence).or_default() += 1;
        }
        let repeated = seen.values().filter(|&&count| count > 1).count();
        assert!(repeated * 100 < seen.len(), "{repeated} of {} sentences repeat", seen.len());
    }
}
