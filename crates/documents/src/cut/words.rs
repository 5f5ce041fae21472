//! The words of a text.
//!
//! A word is a run without white space. Scripts that are written without spaces are divided as Unicode has it (UAX #29), and a run
//! of kilobytes between grapheme clusters.

use std::ops::Range;
use std::vec::IntoIter;
use unicode_segmentation::UnicodeSegmentation;

/// Bytes of a word; longer runs are several words.
const LONGEST: usize = 4 << 10;

/// The words of a text, as ranges of bytes in order; all that is no white space is in one of them.
pub fn words(text: &str) -> WordRanges<'_> {
    WordRanges { text, position: 0, parts: Vec::new().into_iter() }
}

pub struct WordRanges<'a> {
    text: &'a str,
    position: usize,
    /// The words of a run that is more than one.
    parts: IntoIter<Range<usize>>,
}

impl Iterator for WordRanges<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        if let Some(part) = self.parts.next() {
            return Some(part);
        }
        let Range { start, end } = next_run(self.text, self.position)?;
        self.position = end;
        let run = &self.text[start..end];
        if is_one_word(run) {
            return Some(start..end);
        }
        self.parts = parts(run, start).into_iter();
        self.parts.next()
    }
}

/// The runs without white space from a place on.
pub fn runs_from(text: &str, position: usize) -> impl Iterator<Item = Range<usize>> {
    std::iter::successors(next_run(text, position), |run| next_run(text, run.end))
}

fn next_run(text: &str, position: usize) -> Option<Range<usize>> {
    let start = space_end(text, position);
    let end = run_end(text, start);
    (start < end).then_some(start..end)
}

/// The first place from `place` on where no white space begins.
fn space_end(text: &str, mut place: usize) -> usize {
    loop {
        while text.as_bytes().get(place) == Some(&b' ') {
            place += 1;
        }
        match text[place..].chars().next() {
            Some(character) if character.is_whitespace() => place += character.len_utf8(),
            _ => return place,
        }
    }
}

/// The first place from `place` on where white space begins.
fn run_end(text: &str, mut place: usize) -> usize {
    loop {
        while let Some(b'!'..=b'~') = text.as_bytes().get(place) {
            place += 1;
        }
        match text[place..].chars().next() {
            Some(character) if !character.is_whitespace() => place += character.len_utf8(),
            _ => return place,
        }
    }
}

pub fn count_words(text: &str) -> usize {
    quick_count(text).unwrap_or_else(|| words(text).count())
}

/// The number of words, where the text has some; counted up to `most`.
pub fn count_words_up_to(text: &str, most: usize) -> usize {
    quick_count(text).unwrap_or_else(|| words(text).take(most).count()).min(most)
}

/// The number of words of a short text where each begins after ASCII white space; `None` for other texts. Bytes are compared with those
/// before them, without a branch for each word.
fn quick_count(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    // The first bytes of characters that may be white space or of a script without spaces; two of them are often neither.
    let is_special = |byte: u8| matches!(byte, 0xe0 | 0xe1 | 0xe3..);
    let is_space = |byte: u8| byte == b' ' || (b'\t'..=b'\r').contains(&byte);
    let begins_space = |place: usize| text[place..].starts_with(char::is_whitespace);
    let is_other = text.len() > LONGEST
        || bytes.iter().fold(false, |other, &byte| other | is_special(byte))
        || memchr::memchr2_iter(0xc2, 0xe2, bytes).any(begins_space);
    let begins = bytes.windows(2).filter(|pair| is_space(pair[0]) && !is_space(pair[1])).count();
    let first = bytes.first().is_some_and(|&byte| !is_space(byte));
    (!is_other).then_some(begins + usize::from(first))
}

fn is_one_word(run: &str) -> bool {
    run.len() <= LONGEST && (run.is_ascii() || !run.chars().any(is_spaceless))
}

/// Returns true for characters of scripts that have no spaces between words: Thai, Lao, Tibetan, Myanmar, Khmer, kana, bopomofo,
/// Han and relatives.
fn is_spaceless(character: char) -> bool {
    matches!(
        u32::from(character),
        0x0e01..=0x0fff | 0x1000..=0x109f | 0x1780..=0x17ff | 0x1950..=0x19ff | 0x1a20..=0x1aad | 0x3005..=0x3007
            | 0x3041..=0x31bf | 0x31f0..=0x31ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xa9e0..=0xa9ff | 0xaa60..=0xaa7f
            | 0xf900..=0xfaff | 0xff66..=0xff9f | 0x1b000..=0x1b16f | 0x20000..=0x3ffff
    )
}

/// The words of a run without white space that is not one word; they cover it. Marks belong to the word before them.
fn parts(run: &str, start: usize) -> Vec<Range<usize>> {
    let mut starts = vec![0];
    let mut has_word = false;
    if run.chars().any(is_spaceless) {
        for (place, part) in run.split_word_bound_indices() {
            let is_word = part.chars().any(char::is_alphanumeric);
            if is_word && has_word {
                starts.push(place);
            }
            has_word |= is_word;
        }
    }
    let ends = starts.iter().skip(1).copied().chain([run.len()]);
    let ranges = starts.iter().copied().zip(ends).flat_map(|(from, to)| short_parts(run, from..to));
    ranges.map(|range| start + range.start..start + range.end).collect()
}

/// Cuts a long range between grapheme clusters, and a long cluster between characters.
fn short_parts(run: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = range.start;
    while range.end - start > LONGEST {
        let most = run.floor_char_boundary(start + LONGEST);
        let clusters = run[start..most].grapheme_indices(true).skip(1).map(|(place, _)| start + place);
        // The last cluster may go on after the part.
        let end = clusters.last().unwrap_or(most);
        parts.push(start..end);
        start = end;
    }
    parts.push(start..range.end);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_runs_and_unicode_words_where_there_are_no_spaces() {
        let cases: [(&str, &[&str]); 9] = [
            ("", &[]),
            (" \n\u{a0}\u{3000}", &[]),
            ("Don't stop, e.g. here—now!", &["Don't", "stop,", "e.g.", "here—now!"]),
            ("a\u{a0}b\tc\u{2028}d", &["a", "b", "c", "d"]),
            ("「你好，世界。」", &["「你", "好，", "世", "界。」"]),
            ("カタカナ語 and 3月", &["カタカナ", "語", "and", "3", "月"]),
            ("。。。", &["。。。"]),
            ("😀😀 👨‍👩‍👧", &["😀😀", "👨‍👩‍👧"]),
            ("שלום עולם", &["שלום", "עולם"]),
        ];
        for (text, expected) in cases {
            assert_eq!(words(text).map(|range| &text[range]).collect::<Vec<_>>(), expected);
        }
        assert!(count_words("ภาษาไทย") > 1);
    }

    proptest::proptest! {
        #[test]
        fn quick_counts_are_those_of_all_words(text in "([a-zé]{0,3}[ \\n\\t.’]?|[\u{a0}«\u{2003}—ßעम语🎉\u{1680}]){0,12}") {
            if let Some(count) = quick_count(&text) {
                proptest::prop_assert_eq!(count, words(&text).count());
            }
            proptest::prop_assert_eq!(count_words_up_to(&text, 3), words(&text).count().min(3));
        }
    }

    #[test]
    fn quick_counts_are_for_common_texts() {
        assert_eq!(quick_count(" One’s “two”\nthree – café. "), Some(5));
        assert_eq!((quick_count(""), quick_count(" \n"), quick_count("a")), (Some(0), Some(0), Some(1)));
        assert_eq!(
            (quick_count("a\u{a0}b"), quick_count("语"), quick_count(&"a".repeat(LONGEST + 1))),
            (None, None, None)
        );
    }

    #[test]
    fn long_runs_are_cut_between_clusters() {
        let cluster = "e\u{301}\u{302}";
        for text in ["a".repeat(3 * LONGEST), cluster.repeat(LONGEST), format!("a{}", "\u{301}".repeat(LONGEST))] {
            let parts: Vec<_> = words(&text).collect();
            assert!(parts.len() > 1 && parts.iter().all(|part| part.len() <= LONGEST));
            assert_eq!(parts.iter().map(|part| &text[part.clone()]).collect::<String>(), text);
        }
        let text = cluster.repeat(LONGEST);
        assert!(words(&text).all(|part| text[part].starts_with('e')));
    }
}
