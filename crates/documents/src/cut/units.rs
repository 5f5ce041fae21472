//! A paragraph to the units that passages are made of.

use super::options::CutAt;
use super::sentences::sentences;
use super::words::{count_words_up_to, words};
use std::ops::Range;

/// A part of a text that is not divided, with the white space after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextUnit {
    pub range: Range<usize>,
    pub words: usize,
}

/// The units of a paragraph, without gaps from its beginning on; none has more than `limit` words. If the paragraph goes on after
/// `text`, the last unit is left for later, unless it is the only one.
pub fn units(text: &str, at: CutAt, limit: usize, is_end: bool) -> Vec<TextUnit> {
    let whole = 0..text.len();
    if at == CutAt::Paragraph && is_end {
        let count = count_words_up_to(text, limit + 1);
        if count <= limit {
            return vec![TextUnit { range: whole, words: count }];
        }
    }
    if at == CutAt::Word {
        return word_units(text, whole, is_end);
    }
    let mut sentences = sentences(text);
    let is_one_sentence = sentences.len() == 1;
    if !is_end && !is_one_sentence {
        sentences.pop();
    }
    let is_whole = is_end || !is_one_sentence;
    let divided = sentences.into_iter().flat_map(|range| {
        let count = count_words_up_to(&text[range.clone()], limit + 1);
        match count <= limit && is_whole {
            true => vec![TextUnit { range, words: count }],
            false => word_units(text, range, is_whole),
        }
    });
    divided.collect()
}

/// Each word is a unit, with the white space after it; the first one has what is before it, too.
fn word_units(text: &str, range: Range<usize>, is_end: bool) -> Vec<TextUnit> {
    let mut starts: Vec<usize> = words(&text[range.clone()]).map(|word| range.start + word.start).collect();
    let end = match is_end || starts.len() < 2 {
        true => range.end,
        false => starts.pop().unwrap_or(range.end),
    };
    if let Some(first) = starts.first_mut() {
        *first = range.start;
    }
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([end]).collect();
    starts.into_iter().zip(ends).map(|(start, end)| TextUnit { range: start..end, words: 1 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &'static str, at: CutAt, limit: usize, is_end: bool) -> Vec<&'static str> {
        let units = units(text, at, limit, is_end);
        assert!(units.iter().all(|unit| unit.words <= limit && unit.words == words(&text[unit.range.clone()]).count()));
        units.into_iter().map(|unit| &text[unit.range]).collect()
    }

    #[test]
    fn units_are_divided_where_they_are_too_long() {
        let text = "One two three. Four\nfive? Six seven eight nine ten.\n\n";
        let sentences = ["One two three. ", "Four\nfive? ", "Six seven eight nine ten.\n\n"];
        assert_eq!(texts(text, CutAt::Paragraph, 10, true), [text]);
        assert_eq!(texts(text, CutAt::Paragraph, 9, true), sentences);
        assert_eq!(texts(text, CutAt::Sentence, 10, true), sentences);
        let words = ["Six ", "seven ", "eight ", "nine ", "ten.\n\n"];
        assert_eq!(texts(text, CutAt::Paragraph, 4, true), [&sentences[..2], &words[..]].concat());
        assert_eq!(texts("a b\n", CutAt::Word, 9, true), ["a ", "b\n"]);
        assert_eq!(texts("  a b", CutAt::Word, 9, true), ["  a ", "b"]);
        assert_eq!(texts("你好。世界。", CutAt::Sentence, 9, true), ["你好。", "世界。"]);
    }

    #[test]
    fn the_last_unit_of_an_open_paragraph_is_left() {
        assert_eq!(texts("One two. Three four. Five", CutAt::Paragraph, 9, false), ["One two. ", "Three four. "]);
        assert_eq!(texts("One two three", CutAt::Paragraph, 9, false), ["One ", "two "]);
        assert_eq!(texts("One", CutAt::Paragraph, 9, false), ["One"]);
        assert_eq!(texts("One two. Three", CutAt::Word, 9, false), ["One ", "two. "]);
    }
}
