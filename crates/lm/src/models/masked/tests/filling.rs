//! Predictions for masked positions, and what they do not depend on.

use super::*;
use crate::models::masked::{EncoderShape, MOST_ELEMENTS};

#[test]
fn the_original_and_all_candidates_are_a_distribution() {
    for name in [BERT, MODERN] {
        let (model, expected) = golden(name);
        let ids: Vec<u32> = numbers(&expected["texts"][0]["ids"]);
        for filled in everything(&model, &ids, &[1, 10], mask(&expected)).unwrap() {
            assert_eq!(filled.best.len(), VOCABULARY - 1, "all but the original");
            let sum = filled.p_original + filled.best.iter().map(|(_, p)| p).sum::<f64>();
            // Sums in f64 of several hundred terms.
            assert!((sum - 1.0).abs() < 1e-12, "{name}: {sum}");
        }
    }
}

/// The original token at a masked position does not matter, and masked positions do not affect each other.
#[test]
fn positions_are_masked_alone() {
    for name in [BERT, MODERN] {
        let (model, expected) = golden(name);
        let mut ids: Vec<u32> = numbers(&expected["texts"][0]["ids"]);
        let before = everything(&model, &ids, &[3], mask(&expected)).unwrap();
        let p = |filled: &Filled, id: u32| filled.best.iter().find(|(other, _)| *other == id).unwrap().1;
        let (old, new) = (ids[3], ids[4]);
        ids[3] = new;
        let after = everything(&model, &ids, &[3], mask(&expected)).unwrap();
        assert_eq!(p(&before[0], new), after[0].p_original, "{name}");
        assert_eq!(p(&after[0], old), before[0].p_original, "{name}");
        assert!(everything(&model, &ids, &[], mask(&expected)).unwrap().is_empty());
    }
}

/// Bit for bit the same, whatever else is in the batch.
#[test]
fn a_prediction_does_not_depend_on_its_batch() {
    for name in [BERT, MODERN] {
        let (model, expected) = golden(name);
        let mut all = Vec::new();
        for text in expected["texts"].as_array().unwrap() {
            let ids: Vec<u32> = numbers(&text["ids"]);
            for length in [ids.len(), ids.len() - 1, 2, 1] {
                let positions: Vec<usize> = (0..length).collect();
                all.extend(masked_positions(&ids[..length], &positions, mask(&expected), &words(name), 6));
            }
        }
        assert!(all.len() > 100);
        let together = fill(&model, &all).unwrap();
        for size in [1, 2, 3, 7] {
            let separately: Vec<Filled> = all.chunks(size).flat_map(|part| fill(&model, part).unwrap()).collect();
            assert_eq!(separately, together, "{name}, {size} at a time");
        }
        all.reverse();
        let reversed = fill(&model, &all).unwrap();
        assert!(reversed.iter().rev().eq(&together), "{name}");
    }
}

#[test]
fn candidates_are_ordered_by_probability_and_then_by_id() {
    let rank =
        |logits: &[f32], allowed: &[bool], best: usize| masked_positions(&[2], &[0], 0, allowed, best)[0].rank(logits);
    let ids = |filled: &Filled| filled.best.iter().map(|(id, _)| *id).collect::<Vec<_>>();
    let logits = [1.0, 3.0, 9.0, 1.0, 3.0, -0.0, 0.0];
    let all = rank(&logits, &[true; 7], 9);
    assert_eq!(ids(&all), [1, 4, 0, 3, 5, 6], "never the original");
    assert_eq!(ids(&rank(&logits, &[true; 7], 3)), [1, 4, 0]);
    assert_eq!(ids(&rank(&logits, &[true, false, true, true], 9)), [0, 3], "what is not listed is not allowed");
    assert!(rank(&logits, &[true; 7], 0).best.is_empty());
    let sum: f64 = logits.iter().map(|logit| f64::from(*logit).exp()).sum();
    assert!((all.p_original - 9f64.exp() / sum).abs() < 1e-15);
    let sure = rank(&[0.0, -1e4, 1e4], &[true; 3], 2);
    assert_eq!((sure.p_original, sure.best), (1.0, vec![(0, 0.0), (1, 0.0)]));
    assert!(rank(&[0.0, f32::NAN, 0.0], &[true; 3], 2).p_original.is_nan());
}

/// Room for what runs at once, and never less for more tokens.
#[test]
fn batches_are_bounded() {
    let shape = EncoderShape { vocab_size: 30_000, heads: 12, context: 512, narrowest: 768 };
    assert_eq!(shape.copies_at_a_time(512), MOST_ELEMENTS / (512 * 30_000));
    assert_eq!(shape.activation_bytes(100), 100 * 30_000 * 16);
    assert_eq!(shape.activation_bytes(1 << 20), MOST_ELEMENTS as u64 * 16);
    // One long text exceeds that bound and runs alone.
    let long = EncoderShape { context: 8192, ..shape };
    assert_eq!(long.copies_at_a_time(8192), 1);
    assert_eq!(long.activation_bytes(1 << 20), 8192 * 8192 * 12 * 16);
    let bytes: Vec<u64> = (0..20_000).step_by(7).map(|tokens| long.activation_bytes(tokens)).collect();
    assert!(bytes.is_sorted());
}
