//! The variance of an AUROC, or of a difference between two, over clusters of samples.

use super::cluster_index::ClusterIndex;

/// Contribution of one sample to twice the number of pairs won: to that of one score, or to a difference between two.
pub(super) struct Component {
    /// The class of the sample.
    pub member: bool,
    /// Of a member twice the number of non-members that it beats, of a non-member twice the number of members that beat
    /// it, where a tie counts one half. An integer, so that nothing is rounded.
    pub twice_count: i128,
}

/// The variance of the share of pairs won by Obuchowski 1997, from one component for each sample of `clusters`.
///
/// With V10 the components of the m members as shares of the n non-members, V01 those of the non-members, A their mean,
/// and a cluster's deviations `a = sum (V10 - A)` over its members and `b = sum (V01 - A)` over its non-members, it is
/// `S10 / m^2 + S01 / n^2 + 2 S11 / (m n)`, where `S10 = I10 / (I10 - 1) sum a^2` over the I10 clusters with members,
/// `S01 = I01 / (I01 - 1) sum b^2` over the I01 clusters with non-members, and `S11 = I / (I - 1) sum a b` over all I
/// clusters; those of one class add nothing to the last sum. With a sample a cluster it is DeLong's.
///
/// Since neither I10 nor I01 is more than I, it equals the sum, written below, of terms that are not negative. It is
/// exactly 0 if every deviation is. `None` if fewer than two clusters have members, or have non-members. O(n).
pub(super) fn variance_by_cluster(components: &[Component], clusters: &ClusterIndex) -> Option<f64> {
    let members = ClassDeviations::new(components, clusters, true)?;
    let others = ClassDeviations::new(components, clusters, false)?;
    let correction = 1.0 / (clusters.count as f64 - 1.0);
    let both: f64 = members.values.iter().zip(&others.values).map(|(a, b)| (a + b).powi(2)).sum();
    let alone =
        |class: &ClassDeviations| (class.correction - correction) * class.values.iter().map(|a| a * a).sum::<f64>();
    Some((1.0 + correction) * both + alone(&members) + alone(&others))
}

/// Deviations of the components of one class from their mean.
struct ClassDeviations {
    /// For each cluster, the sum over its samples of the class, divided by the number of samples of the class.
    values: Vec<f64>,
    /// `1 / (I - 1)` for I clusters with samples of the class.
    correction: f64,
}

impl ClassDeviations {
    /// `None` if fewer than two clusters have samples of the class.
    fn new(components: &[Component], clusters: &ClusterIndex, member: bool) -> Option<Self> {
        let mut sums = vec![(0_i128, 0_i128); clusters.count];
        let (mut number, mut total) = (0, 0);
        let of_class = components.iter().zip(&clusters.numbers).filter(|(component, _)| component.member == member);
        for (component, &cluster) in of_class {
            (number, total) = (number + 1, total + component.twice_count);
            let (samples, sum) = sums.get_mut(cluster)?;
            (*samples, *sum) = (*samples + 1, *sum + component.twice_count);
        }
        let occupied = sums.iter().filter(|(samples, _)| *samples > 0).count();
        let others = components.len() as f64 - number as f64;
        let scale = 2.0 * others * (number as f64).powi(2);
        (occupied > 1).then(|| Self {
            values: sums.iter().map(|(samples, sum)| (sum * number - samples * total) as f64 / scale).collect(),
            correction: 1.0 / (occupied as f64 - 1.0),
        })
    }
}
