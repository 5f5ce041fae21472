//! The n-grams in which two lists of texts differ most.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The maximum number of n-grams that are listed.
const MAX_LISTED: usize = 10;

/// N-grams in fewer texts are not listed.
const MIN_TEXTS: u32 = 3;

/// A word, or a run of one to three characters, that more texts of one list have than of the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SeparatingNgram {
    pub ngram: String,
    /// The share of the members that have it.
    pub members: f64,
    /// The share of the non-members that have it.
    pub non_members: f64,
}

/// Returns up to ten n-grams whose shares of texts differ most between the lists, by the statistic of two proportions;
/// those in fewer than three texts are left out. Equal differences are in the order of the n-grams.
///
/// `sets` has the distinct n-grams of each text, as numbers below `vocabulary`; `spell` is `None` for one that cannot be
/// listed.
pub(super) fn separating<'a>(
    labels: &[bool],
    vocabulary: usize,
    sets: impl Iterator<Item = &'a [u32]>,
    spell: impl Fn(u32) -> Option<String>,
) -> Vec<SeparatingNgram> {
    let mut counts = vec![[0_u32; 2]; vocabulary];
    let mut totals = [0_u32; 2];
    for (set, member) in sets.zip(labels) {
        let class = usize::from(!member);
        totals[class] += 1;
        set.iter().for_each(|&ngram| counts[ngram as usize][class] += 1);
    }
    let [members, non_members] = totals.map(f64::from);
    let shares = |[a, b]: [u32; 2]| [f64::from(a) / members, f64::from(b) / non_members];
    let distance = |count: [u32; 2]| {
        let [a, b] = shares(count);
        let pooled = f64::from(count[0] + count[1]) / (members + non_members);
        (a - b).abs() / (pooled * (1.0 - pooled)).sqrt()
    };
    let mut differing: Vec<(f64, u32)> = (0..)
        .zip(&counts)
        .filter(|(_, count): &(u32, &[u32; 2])| count[0] + count[1] >= MIN_TEXTS)
        .map(|(ngram, count)| (distance(*count), ngram))
        .filter(|(distance, _)| *distance > 0.0)
        .collect();
    differing.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let listed = |(_, ngram): (f64, u32)| {
        let [members, non_members] = shares(counts[ngram as usize]);
        Some(SeparatingNgram { ngram: spell(ngram)?, members, non_members })
    };
    differing.into_iter().filter_map(listed).take(MAX_LISTED).collect()
}
