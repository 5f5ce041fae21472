//! Properties of passages: they are slices of the text, in order, and they do not depend on how the text comes.

use crate::common::{cut, cut_text};
use documents::{Cut, CutAt, Passage};
use proptest::prelude::*;

/// The characters of a text from a place on.
fn slice(text: &str, passage: &Passage) -> String {
    text.chars().skip(passage.offset as usize).take(passage.length as usize).collect()
}

/// Words as the cut counts them, for texts with spaces between all words.
fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// Texts of words, all kinds of white space, punctuation, scripts without spaces, form feeds and marks.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => "[a-zA-Zé]{1,9}",
        1 => "[0-9]{1,3}",
        4 => Just(" ".to_owned()),
        2 => "[.,!?;:] ",
        2 => Just("\n".to_owned()),
        2 => Just("\n\n".to_owned()),
        1 => "[\r\t\u{a0}\u{2028}]",
        1 => Just("\r\n \r\n".to_owned()),
        1 => Just("\n\u{c}".to_owned()),
        1 => "[你好世界。，]{1,6}",
        1 => "[שלום]{1,6}",
        1 => Just("👨‍👩‍👧".to_owned()),
        1 => Just("\0".to_owned()),
        1 => Just("Contents\n".to_owned()),
        1 => Just("12\n".to_owned()),
    ];
    prop::collection::vec(piece, 0..120).prop_map(|pieces| pieces.concat())
}

fn cuts() -> impl Strategy<Value = Cut> {
    let unit = prop_oneof![Just(CutAt::Paragraph), Just(CutAt::Sentence), Just(CutAt::Word)];
    (1usize..20, 0usize..20, unit).prop_map(|(words, overlap, at)| Cut { words, overlap: overlap.min(words / 2), at })
}

proptest! {
    #[test]
    fn passages_are_slices_in_order(text in texts(), cut in cuts()) {
        let (passages, tally) = cut_text(&text, cut, text.len().max(1));
        prop_assert_eq!(passages.len() as u64, tally.passages);
        for passage in &passages {
            let slice = slice(&text, passage);
            prop_assert_eq!(slice.chars().count() as u64, passage.length);
            if tally.dropped.page_lines.pieces == 0 {
                prop_assert_eq!(&slice, &passage.text);
            } else {
                // Only whole lines are missing.
                let mut lines = slice.split_inclusive(['\n', '\r']).flat_map(|line| line.split_inclusive('\u{c}'));
                let kept = words(&passage.text);
                let mut all = lines.by_ref().flat_map(words);
                prop_assert!(kept.iter().all(|word| all.any(|other| other == *word)), "{:?} in {:?}", kept, slice);
            }
            prop_assert_eq!(passage.text.trim(), &passage.text);
            prop_assert!(!passage.text.is_empty());
        }
        for pair in passages.windows(2) {
            prop_assert!(pair[0].offset < pair[1].offset);
            let end = pair[0].offset + pair[0].length;
            let is_next = if cut.overlap == 0 { end <= pair[1].offset } else { end < pair[1].offset + pair[1].length };
            prop_assert!(is_next);
        }
    }

    #[test]
    fn passages_do_not_depend_on_chunks(text in texts(), cut in cuts(), size in 1usize..40) {
        prop_assert_eq!(cut_text(&text, cut, size), cut_text(&text, cut, text.len().max(1)));
    }

    #[test]
    fn every_word_is_in_one_passage(seed in prop::collection::vec((1usize..9, 0usize..12), 1..200), cut in cuts()) {
        // Each word is another one, so that no passage repeats an earlier one.
        let word = |(number, (length, end)): (usize, &(usize, usize))| {
            let letters: String = format!("{number:06}").bytes().map(|digit| char::from(digit - b'0' + b'a')).collect();
            let end = [" ", " ", " ", " ", " ", ", ", ". ", "! ", "\n", "\n\n", "\r\n\r\n", "\n \n\n"][*end];
            format!("{letters}{}{end}", "x".repeat(*length))
        };
        let text: String = seed.iter().enumerate().map(word).collect();
        let (passages, tally) = cut_text(&text, cut, 17);
        let all = words(&text);
        prop_assert_eq!(tally.words as usize, all.len());
        let mut covered: Vec<&str> = Vec::new();
        for passage in &passages {
            let words = words(&passage.text);
            prop_assert!(words.len() <= cut.words);
            let repeated = covered.len().min(cut.overlap);
            if repeated > 0 {
                prop_assert_eq!(&words[..repeated], &covered[covered.len() - repeated..]);
            }
            covered.extend(&words[repeated..]);
        }
        prop_assert_eq!(covered, all);
    }
}

fn texts_of(text: &str, cut: Cut) -> Vec<String> {
    cut_text(text, cut, 5).0.into_iter().map(|passage| passage.text).collect()
}

#[test]
fn whole_units_while_they_fit() {
    let text = "One two three.\n\nFour five.\nSix seven.\n\nEight nine ten eleven. Twelve.\n";
    let cases: [(Cut, &[&str]); 6] = [
        (cut(128), &[text.trim_end()]),
        (cut(7), &["One two three.\n\nFour five.\nSix seven.", "Eight nine ten eleven. Twelve."]),
        (cut(4), &["One two three.", "Four five.\nSix seven.", "Eight nine ten eleven.", "Twelve."]),
        (
            Cut { at: CutAt::Sentence, ..cut(5) },
            &["One two three.\n\nFour five.", "Six seven.", "Eight nine ten eleven. Twelve."],
        ),
        (
            Cut { at: CutAt::Word, ..cut(5) },
            &["One two three.\n\nFour five.", "Six seven.\n\nEight nine ten", "eleven. Twelve."],
        ),
        (
            Cut { overlap: 2, ..cut(6) },
            &[
                "One two three.",
                "two three.\n\nFour five.\nSix seven.",
                "Six seven.\n\nEight nine ten eleven.",
                "ten eleven. Twelve.",
            ],
        ),
    ];
    for (cut, expected) in cases {
        assert_eq!(texts_of(text, cut), expected, "{cut:?}");
    }
}

#[test]
fn texts_of_one_kind() {
    let count = |text: &str, words| texts_of(text, cut(words)).len();
    assert_eq!(texts_of("A book of one sentence.", cut(128)), ["A book of one sentence."]);
    assert_eq!(count("", 128), 0);
    assert_eq!(count(" \n\n\t\r\n", 128), 0);
    // Right to left, with a mark; places are those of the characters as they are stored.
    let (passages, _) = cut_text("\u{200f}שלום עולם.\n\nספר קטן.", cut(2), 3);
    assert_eq!(passages.iter().map(|passage| (passage.offset, passage.length)).collect::<Vec<_>>(), [(0, 11), (13, 8)]);
    // Without spaces.
    let chinese = "今天天气很好。我们去公园散步。";
    assert_eq!(texts_of(chinese, cut(8)), ["今天天气很好。", "我们去公园散步。"]);
    // Zeros are characters as others are.
    assert_eq!(texts_of("One\0two. Three.", cut(128)), ["One\0two. Three."]);
    // Half of the characters are to be letters.
    let (passages, tally) = cut_text("😀😀😀 🎉🎉 👨‍👩‍👧", cut(128), 2);
    assert_eq!((passages.len(), tally.dropped.symbols.pieces, tally.documents_without_passages), (0, 1, 1));
    assert_eq!(count("1234 56789 a bc\n\n| 1 | 2 | 3 |", 128), 0);
    assert_eq!(count("ab 12 c 3", 128), 1);
}

#[test]
fn a_paragraph_of_a_megabyte_without_a_space() {
    let text = "a".repeat(1 << 20);
    for at in [CutAt::Paragraph, CutAt::Sentence, CutAt::Word] {
        let (passages, tally) = cut_text(&text, Cut { words: 100, overlap: 0, at }, 100_000);
        // All parts of 4 KiB are equal, and so are all passages but the last.
        let parts = tally.words + tally.dropped.repeated.words;
        assert!((256..=258).contains(&parts), "{at:?}: {parts}");
        assert!(passages.iter().all(|passage| passage.text.len() <= 100 * 4096));
    }
    let long = format!("{}.", "word and ".repeat(1 << 18));
    let (passages, tally) = cut_text(&long, cut(100_000), 70_001);
    assert_eq!(tally.words + tally.dropped.repeated.words, (1 << 19) + 1);
    assert_eq!(
        passages.iter().map(|passage| slice(&long, passage)).collect::<Vec<_>>(),
        passages.iter().map(|passage| passage.text.clone()).collect::<Vec<_>>()
    );
}

#[test]
fn long_white_space_ends_a_passage() {
    for (space, size) in [("\n", 2 << 20), (" ", (1 << 20) + 50), ("\n", (1 << 20) - 3), ("\n", 900)] {
        let text = format!("One.{}Two.\n\nThree.", space.repeat(size));
        for at in [CutAt::Paragraph, CutAt::Word] {
            let (passages, tally) = cut_text(&text, Cut { words: 128, overlap: 1, at }, 600_000);
            assert_eq!(tally.words, 3);
            assert!(passages.iter().all(|passage| slice(&text, passage) == passage.text), "{space:?} {size} {at:?}");
        }
    }
}

#[test]
fn a_long_paragraph_is_cut_after_sentences() {
    let sentence = |number: usize| format!("The clock number {number} struck. ");
    let text: String = (0..60_000).map(sentence).collect();
    assert!(text.len() > 3 << 19);
    let (passages, tally) = cut_text(&text, cut(12), 100_000);
    assert_eq!((tally.words, passages.len()), (300_000, 30_000));
    assert!(passages.iter().all(|passage| passage.text.starts_with("The clock") && passage.text.ends_with("struck.")));
}

#[test]
fn repeated_passages_are_given_once() {
    let text = "The same words.\n\nOther words.\n\nthe  SAME\nwords.\n";
    let (passages, tally) = cut_text(text, cut(3), 4);
    assert_eq!(
        passages.iter().map(|passage| passage.text.as_str()).collect::<Vec<_>>(),
        ["The same words.", "Other words."]
    );
    assert_eq!((tally.dropped.repeated.pieces, tally.dropped.repeated.words), (1, 3));
    // Other punctuation is another text.
    assert_eq!(cut_text("The same words.\n\nThe same words!", cut(3), 4).0.len(), 2);
}
