//! The words of a text in the form in which a text and what a model wrote are compared.

use crate::texts::digest::normalized;
use std::iter::Peekable;
use std::ops::Range;

/// The words of a text, normalised, with their places in it: what white space separates, in NFKC and in lower case, with one
/// form of each quotation mark, dash and ellipsis and without the underscores that mark italics. This is Appendix C.3 of Ahmed,
/// Cooper, Koyejo and Liang (2026), arXiv 2601.02671, word by word instead of by regular expressions over the text, so that
/// places are kept:
///
/// - an ellipsis whose dots are words of their own (`. . .`) is one word, `...`;
/// - an ellipsis before a letter or a digit ends a word (`so...he` is `so...` and `he`);
/// - an underscore is dropped unless a letter or a digit is on both sides of it.
///
/// The parts of a word that normalisation splits have the place of the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComparedWords {
    words: Vec<Box<str>>,
    /// In Unicode code points of the text.
    places: Vec<Range<usize>>,
}

impl ComparedWords {
    /// The words of a text. O(n).
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut compared = Self::default();
        let mut spaced = spaced_words(text).peekable();
        while let Some((word, place)) = spaced.next() {
            let (word, place) = with_spaced_dots(word, place, &mut spaced);
            for part in parts(word) {
                compared.words.push(part.into());
                compared.places.push(place.clone());
            }
        }
        compared
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.words.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|word| &**word)
    }

    /// The code points of the text from the first of these words to the last; `0..0` for no word.
    pub(super) fn characters(&self, words: Range<usize>) -> Range<usize> {
        match self.places.get(words) {
            Some([first, .., last]) => first.start..last.end,
            Some([only]) => only.clone(),
            _ => 0..0,
        }
    }
}

/// The parts that white space separates, with their places in code points.
fn spaced_words(text: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    let (mut rest, mut passed) = (text, 0);
    std::iter::from_fn(move || {
        let word_start = rest.find(|character: char| !character.is_whitespace())?;
        passed += rest[..word_start].chars().count();
        let from_word = &rest[word_start..];
        let (word, behind) = from_word.split_at(from_word.find(char::is_whitespace).unwrap_or(from_word.len()));
        let place = passed..passed + word.chars().count();
        (rest, passed) = (behind, place.end);
        Some((word, place))
    })
}

/// The word or, where it is the first of the dots of a spaced ellipsis, that ellipsis.
fn with_spaced_dots<'a>(
    word: &'a str,
    place: Range<usize>,
    behind: &mut Peekable<impl Iterator<Item = (&'a str, Range<usize>)>>,
) -> (&'a str, Range<usize>) {
    if word != "." {
        return (word, place);
    }
    let mut end = place.end;
    while let Some((_, dot)) = behind.next_if(|(word, _)| *word == ".") {
        end = dot.end;
    }
    (if end > place.end { "..." } else { word }, place.start..end)
}

/// The normalised parts of a word: one as a rule.
fn parts(word: &str) -> Vec<String> {
    let remapped: String = normalized(word).chars().map(one_form).collect();
    let mut separated = String::with_capacity(remapped.len());
    let mut characters = remapped.chars().peekable();
    while let Some(character) = characters.next() {
        let joins = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
        let next = characters.peek().copied();
        if character == '_' && !(joins(separated.chars().next_back()) && joins(next)) {
            continue;
        }
        separated.push(character);
        if separated.ends_with("...") && joins(next) {
            separated.push(' ');
        }
    }
    separated.split_whitespace().map(str::to_owned).collect()
}

/// The one form of the quotation marks and of the dashes.
fn one_form(character: char) -> char {
    match character {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{ab}' | '\u{bb}' => '"',
        '\u{2012}' | '\u{2013}' | '\u{2015}' => '\u{2014}',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str) -> Vec<(String, Range<usize>)> {
        let compared = ComparedWords::new(text);
        compared.iter().map(str::to_owned).zip(compared.places.clone()).collect()
    }

    fn words(text: &str) -> Vec<String> {
        listed(text).into_iter().map(|(word, _)| word).collect()
    }

    #[test]
    fn a_word_has_its_place_in_code_points() {
        let places = |text| listed(text).into_iter().map(|(_, place)| place).collect::<Vec<_>>();
        assert_eq!(places("  caf\u{e9} \n\u{1f600}x\u{a0}b "), [2..6, 8..10, 11..12]);
        assert_eq!(places("so...he went"), [0..7, 0..7, 8..12]);
        assert_eq!(places("well . . . yes ."), [0..4, 5..10, 11..14, 15..16]);
        assert!(listed(" \n").is_empty() && ComparedWords::new("").is_empty());
    }

    #[test]
    fn differences_of_typography_do_not_count() {
        for (one, other) in [
            ("\u{201c}Don\u{2019}t,\u{201d} he said", "\"don't,\" He SAID"),
            ("a \u{2013} b\u{2015}c", "a \u{2014} b\u{2014}c"),
            ("wait\u{2026} and \u{2026}then", "wait... and ... then"),
            ("_like this_. It was", "like this. it was"),
            ("well . . . . yes", "well ... yes"),
            ("\u{fb01}ne \u{ff21}\u{ff22}", "fine ab"),
        ] {
            assert_eq!(words(one), words(other), "{one}");
        }
    }

    #[test]
    fn what_is_no_typography_stays() {
        assert_eq!(words("snake_case a.b... (so-called) ."), ["snake_case", "a.b...", "(so-called)", "."]);
        assert!(words("_ __").is_empty());
    }
}
