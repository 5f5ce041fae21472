//! Which texts make a step.

use mia::random::{shuffle, stream};

/// The texts of every step, by index: each epoch has all texts in another order, in batches of `size`; what does not fill
/// the last one is left out of that epoch.
pub(super) fn batches(texts: usize, size: usize, epochs: usize, seed: u64) -> Vec<Vec<usize>> {
    let epoch = |epoch: usize| {
        let mut order: Vec<usize> = (0..texts).collect();
        shuffle(&mut order, &mut stream(seed, &format!("order {epoch}")));
        order.chunks_exact(size.max(1)).map(<[usize]>::to_vec).collect::<Vec<_>>()
    };
    (0..epochs).flat_map(epoch).collect()
}

/// Parts of a batch with at most `most` tokens each, or one text; order kept.
pub(super) fn parts<'a>(texts: &[&'a [u32]], most: usize) -> Vec<Vec<&'a [u32]>> {
    let mut parts: Vec<Vec<&[u32]>> = Vec::new();
    let mut tokens = 0;
    for text in texts {
        match parts.last_mut() {
            Some(part) if tokens + text.len() <= most => part.push(text),
            _ => {
                parts.push(vec![text]);
                tokens = 0;
            }
        }
        tokens += text.len();
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_epoch_has_every_text_once_in_another_order() {
        let all = batches(24, 8, 2, 42);
        assert_eq!(all.len(), 6);
        let sorted = |epoch: &[Vec<usize>]| {
            let mut texts = epoch.concat();
            texts.sort_unstable();
            texts
        };
        assert_eq!(sorted(&all[..3]), (0..24).collect::<Vec<_>>());
        assert_eq!(sorted(&all[3..]), (0..24).collect::<Vec<_>>());
        assert_ne!(all[..3], all[3..]);
        assert_eq!(all, batches(24, 8, 2, 42));
        assert_ne!(all, batches(24, 8, 2, 43));
        assert_eq!(batches(23, 8, 1, 1).len(), 2, "what does not fill a batch is left out");
        assert!(batches(7, 8, 1, 1).is_empty());
    }

    #[test]
    fn parts_hold_all_texts_in_order_and_few_tokens() {
        let texts: Vec<Vec<u32>> = [5, 5, 1, 12, 3].iter().map(|&length| vec![0; length]).collect();
        let texts: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
        let lengths = |most| {
            parts(&texts, most).iter().map(|part| part.iter().map(|text| text.len()).collect()).collect::<Vec<Vec<_>>>()
        };
        assert_eq!(lengths(10), [vec![5, 5], vec![1], vec![12], vec![3]]);
        assert_eq!(lengths(100), [vec![5, 5, 1, 12, 3]]);
    }
}
