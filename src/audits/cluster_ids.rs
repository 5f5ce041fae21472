//! The clusters of some of an audit's samples.

use std::collections::HashMap;

/// The clusters numbered from 0 by first appearance. A sample without one is its own.
pub fn dense(clusters: impl IntoIterator<Item = Option<usize>>) -> Vec<usize> {
    let (mut numbers, mut next) = (HashMap::new(), 0);
    let mut number = || {
        next += 1;
        next - 1
    };
    clusters
        .into_iter()
        .map(|cluster| match cluster {
            None => number(),
            Some(cluster) => *numbers.entry(cluster).or_insert_with(&mut number),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::dense;

    #[test]
    fn clusters_are_numbered_by_first_appearance() {
        assert_eq!(dense([Some(7), None, Some(2), Some(7), None, Some(2)]), [0, 1, 2, 0, 3, 2]);
    }
}
