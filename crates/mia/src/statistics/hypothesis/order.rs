//! Test whether a model prefers the order in which a dataset was published.

use super::HypothesisError;
use super::publication::permutation_p_value;
use super::student::{TTest, one_sample_t};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The log-probabilities of the items of a shard, in nats, in several orders.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardOrder {
    /// In the order in which they were published.
    pub canonical: f64,
    /// In random orders, at least one.
    pub shuffles: Vec<f64>,
}

/// Test whether the published order of a dataset is more probable than random orders.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrderTest {
    /// The number of shards.
    pub shards: usize,
    /// The mean over the shards of the log-probability of the published order, less the mean of that of the random
    /// orders, in nats.
    pub mean_difference: f64,
    /// Student's test over the shards that the difference is greater than 0; absent for one shard, or if the difference
    /// is the same in all shards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub t: Option<TTest>,
    /// For a single shard, the share of the orders that are at least as probable as the published one, which is counted
    /// among them; its smallest value is 1 divided by the number of random orders plus 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permutation_p_value: Option<f64>,
}

impl OrderTest {
    /// The p-value of the test that could be computed, one-sided.
    pub fn p_value(&self) -> Option<f64> {
        self.permutation_p_value.or(self.t.map(|t| t.p_value))
    }
}

/// Tests whether the published order of each of `shards` is more probable than its random orders, as it is for a
/// dataset that was trained on in that order (Oren et al. 2024).
///
/// With two shards or more, Student's t over the differences of the shards; with a single one, the rank of the
/// published order among the random ones, where equal log-probabilities count against it. O(n).
///
/// # Errors
///
/// If there are no shards, a shard has no random order, or a log-probability or a sum of them is not finite.
pub fn order(shards: &[ShardOrder]) -> Result<OrderTest, HypothesisError> {
    let differences: Vec<f64> = shards.iter().map(ShardOrder::difference).collect::<Result<_, _>>()?;
    let mean_difference = differences.iter().sum::<f64>() / differences.len() as f64;
    let permutation_p_value = match shards {
        [] => return Err(HypothesisError::NoValues),
        [shard] => Some(shard.permutation_p_value()),
        [_, _, ..] => None,
    };
    if !mean_difference.is_finite() {
        return Err(HypothesisError::NonFinite);
    }
    Ok(OrderTest { shards: shards.len(), mean_difference, t: one_sample_t(&differences), permutation_p_value })
}

impl ShardOrder {
    /// The log-probability of the published order, less the mean of the others.
    fn difference(&self) -> Result<f64, HypothesisError> {
        if self.shuffles.is_empty() {
            return Err(HypothesisError::NoValues);
        }
        let mean = self.shuffles.iter().sum::<f64>() / self.shuffles.len() as f64;
        Some(self.canonical - mean).filter(|difference| difference.is_finite()).ok_or(HypothesisError::NonFinite)
    }

    fn permutation_p_value(&self) -> f64 {
        let reached = self.shuffles.iter().filter(|shuffle| **shuffle >= self.canonical).count();
        permutation_p_value(reached, self.shuffles.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::fixtures::{DIFFERENCES, assert_close, assert_exact_level, assert_within, normals};

    fn shard(canonical: f64, shuffles: &[f64]) -> ShardOrder {
        ShardOrder { canonical, shuffles: shuffles.to_vec() }
    }

    #[test]
    fn several_shards() {
        let shards = DIFFERENCES.map(|difference| shard(difference - 2.0, &[-1.0, -3.0, -2.5, -1.5]));
        let test = order(&shards).expect("shards");
        let t = test.t.expect("variance");
        assert_eq!((test.shards, test.permutation_p_value, test.p_value()), (8, None, Some(t.p_value)));
        assert_within(test.mean_difference, 0.08375, 1e-12);
        // `scipy.stats.ttest_1samp(differences, 0, alternative="greater")`
        assert_close(t.statistic, 2.974736392316735);
        assert_eq!(t.degrees_of_freedom, 7.0);
        assert_close(t.p_value, 0.0103342384687311);
    }

    #[test]
    fn one_shard() {
        let p_value = |canonical| {
            let test = order(&[shard(canonical, &[-1.0, -2.0, -3.0])]).expect("a shard");
            assert_eq!(test.t, None);
            test.p_value().expect("one shard")
        };
        // An equal log-probability counts against the published order.
        assert_eq!([-0.5, -1.0, -1.5, -9.0].map(p_value), [0.25, 0.5, 0.5, 1.0]);
    }

    #[test]
    fn what_cannot_be_tested() {
        assert_eq!(order(&[]), Err(HypothesisError::NoValues));
        assert_eq!(order(&[shard(1.0, &[])]), Err(HypothesisError::NoValues));
        assert_eq!(order(&[shard(f64::NAN, &[1.0])]), Err(HypothesisError::NonFinite));
        assert_eq!(order(&[shard(1.0, &[f64::MAX, f64::MAX])]), Err(HypothesisError::NonFinite));
        // The same difference in each shard.
        let constant = order(&[shard(1.0, &[0.9]), shard(3.0, &[2.9])]).expect("shards");
        assert_eq!((constant.t, constant.p_value()), (None, None));
    }

    #[test]
    fn type_one_error() {
        assert_exact_level("order, shards", |random| {
            let shards: Vec<ShardOrder> = (0..10).map(|_| shard(normals(random, 1)[0], &normals(random, 50))).collect();
            order(&shards).expect("shards").p_value().expect("variance")
        });
        assert_exact_level("order, one shard", |random| {
            let shards = [shard(normals(random, 1)[0], &normals(random, 19))];
            order(&shards).expect("a shard").p_value().expect("one shard")
        });
    }
}
