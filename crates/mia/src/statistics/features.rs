//! Features of texts or clusters, as a regression reads them.

use foldhash::{HashMap, HashMapExt};

/// A matrix by rows: a row for each text or cluster, a column for each feature.
pub(super) struct FeatureRows {
    values: Vec<f64>,
    width: usize,
}

impl FeatureRows {
    pub fn zero(rows: usize, width: usize) -> Self {
        Self { values: vec![0.0; width * rows], width }
    }

    /// Sets a column; `values` has one for each row.
    pub fn set_column(&mut self, column: usize, values: &[f64]) {
        let rows = self.values.chunks_exact_mut(self.width);
        rows.zip(values).for_each(|(row, value)| row[column] = *value);
    }

    /// The number of features.
    pub fn width(&self) -> usize {
        self.width
    }

    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.width..][..self.width]
    }
}

/// Each value less the mean of its group, divided by the standard deviation, both over the `training` rows; 0 where it is missing or nothing varies.
pub(super) fn standardised(column: &[Option<f64>], training: &[usize], strata: &[usize]) -> Vec<f64> {
    let known = || training.iter().filter_map(|&text| Some((strata[text], column[text]?)));
    let mut groups: HashMap<usize, (f64, f64)> = HashMap::new();
    let (mut sum, mut number) = (0.0, 0.0);
    for (stratum, value) in known() {
        let (group_sum, group_number) = groups.entry(stratum).or_default();
        (*group_sum, *group_number) = (*group_sum + value, *group_number + 1.0);
        (sum, number) = (sum + value, number + 1.0);
    }
    let mean = |stratum: usize| groups.get(&stratum).map_or(sum / number, |(sum, number)| sum / number);
    let squares: f64 = known().map(|(stratum, value)| (value - mean(stratum)).powi(2)).sum();
    let deviation = (squares / number).sqrt();
    // Values that differ by rounding alone do not vary.
    let largest = known().map(|(_, value)| value.abs()).fold(0.0, f64::max);
    let varies = deviation > 1e-12 * largest;
    let value = |(value, &stratum): (&Option<f64>, &usize)| {
        value.filter(|_| varies).map_or(0.0, |value| (value - mean(stratum)) / deviation)
    };
    column.iter().zip(strata).map(value).collect()
}
