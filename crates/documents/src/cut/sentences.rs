//! The sentences of a paragraph, as Unicode has them (UAX #29).
//!
//! To look up the property of each character takes most of the time of a cut. But a sentence only ends after a mark such as a full stop,
//! and the rules look no further than to the letter before the mark and to the first letter after it. So only the words around marks are
//! searched, and a test compares that with a search of the whole.

use super::words::runs_from;
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

/// The sentences of a text, which they cover. A line end is a space here, and no end of a sentence.
pub fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut starts = vec![0];
    starts.extend(boundaries(&flat(text)));
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let mut sentences: Vec<Range<usize>> = Vec::new();
    for (start, end) in starts.iter().copied().zip(ends) {
        match sentences.last_mut() {
            // White space is no sentence.
            Some(last) if text[start..end].trim().is_empty() || text[last.clone()].trim().is_empty() => last.end = end,
            _ => sentences.push(start..end),
        }
    }
    sentences
}

/// The text with spaces for line ends.
fn flat(text: &str) -> String {
    let mut flat = String::with_capacity(text.len());
    let mut start = 0;
    for end in memchr::memchr2_iter(b'\n', b'\r', text.as_bytes()) {
        flat.push_str(&text[start..end]);
        flat.push(' ');
        start = end + 1;
    }
    flat.push_str(&text[start..]);
    flat
}

/// The places between sentences.
fn boundaries(text: &str) -> Vec<usize> {
    let mut boundaries = Vec::new();
    for window in windows(text) {
        let starts = text[window.clone()].split_sentence_bound_indices().skip(1);
        boundaries.extend(starts.map(|(start, _)| window.start + start));
    }
    boundaries
}

/// The parts of a text where sentences may end: from a word with a mark to the first one after it that has a letter and no mark.
fn windows(text: &str) -> Vec<Range<usize>> {
    // These end a sentence without a mark.
    if ['\u{85}', '\u{2028}', '\u{2029}'].iter().any(|&separator| !text.is_ascii() && text.contains(separator)) {
        return std::iter::once(0..text.len()).collect();
    }
    let mut windows = Vec::new();
    let mut end = 0;
    while let Some(mark) = next_mark(text, end) {
        let before = text[end..mark].rfind(char::is_whitespace).map_or(end, |place| end + place);
        let mut window = before..mark;
        for run in runs_from(text, before) {
            window.end = run.end;
            let word = &text[run];
            if next_mark(word, 0).is_none() && word.chars().any(char::is_alphabetic) {
                break;
            }
        }
        end = window.end;
        windows.push(window);
    }
    windows
}

/// The place of the first character from `start` on that may be a mark: of all scripts, marks are no letters.
fn next_mark(text: &str, mut start: usize) -> Option<usize> {
    loop {
        let is_candidate = |byte: &u8| matches!(byte, b'.' | b'!' | b'?' | 0x80..);
        start += text.as_bytes()[start..].iter().position(is_candidate)?;
        match text[start..].chars().next() {
            Some(character) if character.is_alphabetic() || character.is_whitespace() => start += character.len_utf8(),
            _ => return Some(start),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            4 => "[a-z]{1,4}",
            2 => "[A-Z][a-z]{0,3}",
            3 => "[.!?,;:'\"()-]",
            1 => "[…。！’”»—é١۔\u{301}\u{ad}\u{200b}\u{2024}]",
            1 => "[你好शब्द।]",
            1 => "[0-9]{1,2}",
            6 => Just(" ".to_owned()),
            1 => "[\t\u{a0}\u{c}]",
        ];
        prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
    }

    #[test]
    fn separators_end_sentences_without_a_mark() {
        assert_eq!(boundaries("a\u{2029}b c\u{85}d"), [4, 9]);
        assert_eq!(sentences("One. two\nthree.\n\nFour. "), [0..17, 17..23]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn the_words_around_marks_are_enough(text in pieces()) {
            let expected: Vec<usize> = text.split_sentence_bound_indices().skip(1).map(|(start, _)| start).collect();
            prop_assert_eq!(boundaries(&text), expected);
        }
    }
}
