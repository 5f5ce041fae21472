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

/// The runs without white space of a text.
pub fn runs(text: &str) -> impl Iterator<Item = Range<usize>> {
    let first = next_run(text, 0);
    std::iter::successors(first, |run| next_run(text, run.end))
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
    words(text).count()
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
