//! The measure by hand, against Python's `difflib` and by its properties.

use super::*;
use proptest::prelude::*;
use serde::Deserialize;
use std::time::{Duration, Instant};

fn measured(reference: &str, generation: &str, passes: &[MergeAndFilter]) -> NearVerbatim {
    near_verbatim(&ComparedWords::new(reference), &ComparedWords::new(generation), passes)
}

/// Numbers as words; the words of one range are in no other.
fn numbers(range: Range<usize>) -> String {
    range.map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
}

/// The words of both texts of every block, and the number that match.
fn extents(measured: &NearVerbatim) -> Vec<(Range<usize>, Range<usize>, usize)> {
    let extent = |block: &NearVerbatimBlock| (block.reference.clone(), block.generation.clone(), block.matching);
    measured.blocks.iter().map(extent).collect()
}

#[derive(Deserialize)]
struct DifflibCase {
    reference: String,
    generation: String,
    /// First words in both texts, and length.
    matching: Vec<[usize; 3]>,
    passes: Vec<[usize; 3]>,
    /// Start and end in both texts, and matching words.
    blocks: Vec<[usize; 5]>,
}

/// The file is written by `tests/interop/near_verbatim.py`.
#[test]
fn blocks_are_those_of_difflib_and_of_the_equations() {
    let cases = include_str!("../../../../../tests/fixtures/near_verbatim.json");
    let cases: Vec<DifflibCase> = serde_json::from_str(cases).unwrap();
    assert!(cases.iter().filter(|case| !case.blocks.is_empty()).count() > 50);
    for case in &cases {
        let (reference, generation) = (ComparedWords::new(&case.reference), ComparedWords::new(&case.generation));
        let [first, second] = numbered([&reference, &generation]);
        let matching: Vec<[usize; 3]> = matching_blocks(&first, &second)
            .into_iter()
            .map(|MatchingBlock { first, second, length }| [first, second, length])
            .collect();
        assert_eq!(matching, case.matching, "{} | {}", case.reference, case.generation);
        let passes: Vec<MergeAndFilter> =
            case.passes.iter().map(|&[gap, alignment, least]| MergeAndFilter { gap, alignment, least }).collect();
        let measured = near_verbatim(&reference, &generation, &passes);
        let blocks: Vec<[usize; 5]> = extents(&measured)
            .into_iter()
            .map(|(first, second, matching)| [first.start, first.end, second.start, second.end, matching])
            .collect();
        assert_eq!(blocks, case.blocks, "{} | {} | {passes:?}", case.reference, case.generation);
    }
}

#[test]
fn a_passage_with_small_changes_is_one_block_that_counts_its_matching_words() {
    // 60 words, 4 others, 50 words, one left out, 40 words: the last gap is 1 in the reference and 0 in the generation.
    let reference = numbers(0..155);
    let generation = format!("{} w x y z {} {}", numbers(0..60), numbers(64..114), numbers(115..155));
    let result = measured(&reference, &generation, &NEAR_VERBATIM_PASSES);
    assert_eq!(extents(&result), [(0..155, 0..154, 150)]);
    assert_eq!((result.matching(), result.reference_words, result.generation_words), (150, 155, 154));
    assert_eq!(result.recall(), Some(150.0 / 155.0));
    // Behind the first pass they are two: gaps of 4 are too wide for it.
    let result = measured(&reference, &generation, &NEAR_VERBATIM_PASSES[..1]);
    assert_eq!(extents(&result), [(0..60, 0..60, 60), (64..155, 64..154, 90)]);
}

/// The numbers of words before the gap, in it in the reference and in the generation, and behind it; and the blocks that are left.
#[test]
fn the_thresholds_of_the_paper_are_included() {
    let cases: [([usize; 4], &[usize]); 10] = [
        ([100, 0, 0, 0], &[100]),
        ([99, 0, 0, 0], &[]),
        ([80, 10, 10, 20], &[100]),
        ([80, 11, 11, 20], &[]),
        ([80, 10, 7, 20], &[100]),
        ([80, 10, 6, 20], &[]),
        ([81, 10, 10, 19], &[]),
        ([81, 2, 1, 19], &[100]),
        ([81, 2, 0, 19], &[]),
        ([120, 11, 11, 120], &[120, 120]),
    ];
    for ([before, in_reference, in_generation, behind], expected) in cases {
        let text = |first: usize, gap| {
            format!("{} {} {}", numbers(0..before), numbers(first..first + gap), numbers(1000..1000 + behind))
        };
        let result = measured(&text(2000, in_reference), &text(3000, in_generation), &NEAR_VERBATIM_PASSES);
        let matching: Vec<usize> = result.blocks.iter().map(|block| block.matching).collect();
        assert_eq!(matching, expected, "{before} {in_reference} {in_generation} {behind}");
    }
}

#[test]
fn the_gap_behind_a_merged_block_is_counted_from_its_end() {
    // Runs of 20, 20 and 60 words with gaps of two: were the first gap not part of the merged block, the second would be wider.
    let text = |filler: &str| {
        format!("{} {filler} {filler} {} {filler} {filler} {}", numbers(0..20), numbers(20..40), numbers(40..100))
    };
    assert_eq!(extents(&measured(&text("x"), &text("y"), &NEAR_VERBATIM_PASSES)), [(0..104, 0..104, 100)]);
}

#[test]
fn places_are_in_code_points_of_each_text() {
    let pass = MergeAndFilter { gap: 1, alignment: 1, least: 2 };
    let result = measured("\u{1f600} Caf\u{e9}  au lait.", "x caf\u{e9} noir\tau\u{a0}lait. y", &[pass]);
    let [block] = &result.blocks[..] else { panic!("{:?}", result.blocks) };
    assert_eq!((block.reference.clone(), block.generation.clone(), block.matching), (1..4, 1..5, 3));
    assert_eq!((block.reference_characters.clone(), block.generation_characters.clone()), (2..16, 2..20));
}

#[test]
fn nothing_is_recalled_of_nothing() {
    assert_eq!(measured("", "a b", &[]).recall(), None);
    assert_eq!(measured("a b", "", &[]).recall(), Some(0.0));
    assert!(measured("a b", "", &[]).blocks.is_empty());
}

/// Text in another order counts once, and text that is given twice as well.
#[test]
fn what_is_given_out_of_order_or_again_does_not_count() {
    let (one, two) = (numbers(0..150), numbers(150..300));
    let swapped = measured(&format!("{one} {two}"), &format!("{two} {one}"), &NEAR_VERBATIM_PASSES);
    assert_eq!(swapped.recall(), Some(0.5));
    let twice = measured(&format!("{one} {two}"), &format!("{one} {one}"), &NEAR_VERBATIM_PASSES);
    assert_eq!((twice.recall(), twice.generation_words - twice.matching()), (Some(0.5), 150));
}

/// A generous bound: quadratic time would take minutes.
fn in_seconds(what: &str, measure: impl FnOnce()) {
    let started = Instant::now();
    measure();
    assert!(started.elapsed() < Duration::from_secs(60), "{what}: {:?}", started.elapsed());
}

#[test]
fn long_repetitive_texts_take_seconds() {
    const WORDS: usize = 100_000;
    let repeated = |period: usize, words: usize| -> String {
        (0..words).map(|place| (place % period).to_string()).collect::<Vec<_>>().join(" ")
    };
    in_seconds("equal words", || {
        let result = measured(&repeated(1, WORDS), &repeated(1, WORDS), &NEAR_VERBATIM_PASSES);
        assert_eq!(extents(&result), [(0..WORDS, 0..WORDS, WORDS)]);
        let result = measured(&repeated(1, WORDS), &repeated(1, WORDS / 3), &NEAR_VERBATIM_PASSES);
        assert_eq!(extents(&result), [(0..WORDS / 3, 0..WORDS / 3, WORDS / 3)]);
    });
    in_seconds("shifted periods", || {
        let result = measured(&repeated(7, WORDS), &format!("3 4 x {}", repeated(7, WORDS)), &NEAR_VERBATIM_PASSES);
        assert_eq!(result.recall(), Some(1.0));
    });
    in_seconds("every other word", || {
        let text = |other: &str| (0..WORDS / 2).map(|n| format!("{n} {other}")).collect::<Vec<_>>().join(" ");
        let result = measured(&text("x"), &text("y"), &NEAR_VERBATIM_PASSES);
        assert_eq!(extents(&result), [(0..WORDS - 1, 0..WORDS - 1, WORDS / 2)]);
    });
    // Runs of 1, 2, 3 ... words: the deepest chain of regions within each other.
    in_seconds("runs of all lengths", || {
        let text = |other: usize| {
            let run = |length: usize| numbers(length * 1000..length * 1000 + length);
            (1..=250).map(|length| format!("{} {}", run(length), other + length)).collect::<Vec<_>>().join(" ")
        };
        let result = measured(&text(1_000_000), &text(2_000_000), &[]);
        assert_eq!((result.blocks.len(), result.matching()), (250, 250 * 251 / 2));
    });
}

fn letters() -> impl Strategy<Value = String> {
    prop::collection::vec("[a-d]", 0..40).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn a_text_recalls_itself_whole(text in letters()) {
        let passes = [MergeAndFilter { gap: 2, alignment: 1, least: 0 }];
        let result = measured(&text, &text, &passes);
        prop_assert!(result.recall().is_none_or(|recall| recall == 1.0));
        prop_assert!(result.blocks.len() <= 1);
    }

    #[test]
    fn texts_without_a_common_word_recall_nothing(text in letters(), other in "[e-h]( [e-h]){0,30}") {
        prop_assert_eq!(measured(&text, &other, &[]).matching(), 0);
    }

    /// The longest common run is the same from both sides; by the definition, over all pairs of places.
    #[test]
    fn the_longest_run_is_symmetric(text in letters(), other in letters()) {
        let longest = |result: &NearVerbatim| result.blocks.iter().map(|block| block.matching).max().unwrap_or(0);
        let (one, two) = (measured(&text, &other, &[]), measured(&other, &text, &[]));
        let (first, second): (Vec<&str>, Vec<&str>) = (text.split(' ').collect(), other.split(' ').collect());
        let run = |(i, j): (usize, usize)| {
            let pairs = first[i..].iter().zip(&second[j..]);
            pairs.take_while(|(a, b)| a == b && !a.is_empty()).count()
        };
        let places = (0..first.len()).flat_map(|i| (0..second.len()).map(move |j| (i, j)));
        let defined = places.map(run).max().unwrap_or(0);
        // Runs that touch in both texts are one run in the definition too.
        prop_assert_eq!((longest(&one), longest(&two)), (defined, defined));
    }

    #[test]
    fn blocks_are_common_in_order_and_large_enough(
        text in letters(),
        other in letters(),
        passes in prop::collection::vec((0_usize..4, 0_usize..3, 0_usize..6), 0..3),
    ) {
        let passes: Vec<MergeAndFilter> =
            passes.into_iter().map(|(gap, alignment, least)| MergeAndFilter { gap, alignment, least }).collect();
        let result = measured(&text, &other, &passes);
        let (reference, generation) = (ComparedWords::new(&text), ComparedWords::new(&other));
        let (first, second): (Vec<&str>, Vec<&str>) = (reference.iter().collect(), generation.iter().collect());
        let (mut behind_first, mut behind_second) = (0, 0);
        for block in &result.blocks {
            prop_assert!(block.reference.start >= behind_first && block.generation.start >= behind_second);
            (behind_first, behind_second) = (block.reference.end, block.generation.end);
            prop_assert!(block.matching <= block.reference.len().min(block.generation.len()));
            prop_assert!(passes.last().is_none_or(|pass| block.matching >= pass.least));
            prop_assert_eq!(first[block.reference.start], second[block.generation.start]);
            prop_assert_eq!(first[block.reference.end - 1], second[block.generation.end - 1]);
            if passes.is_empty() {
                prop_assert_eq!(&first[block.reference.clone()], &second[block.generation.clone()]);
                prop_assert_eq!(block.matching, block.reference.len());
            }
        }
        prop_assert!(behind_first <= first.len() && behind_second <= second.len());
        prop_assert!(result.matching() <= first.len().min(second.len()));
        prop_assert!(result.recall().is_none_or(|recall| (0.0..=1.0).contains(&recall)));
    }
}
