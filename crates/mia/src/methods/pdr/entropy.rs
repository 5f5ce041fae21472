//! Weights from the entropy of the model's distribution, as ablations of positional decay.

/// Each over the largest of them; 1 where none is above 0.
pub fn relative_to_largest(values: Vec<f64>) -> Vec<f64> {
    let largest = values.iter().copied().fold(0.0, f64::max);
    values.into_iter().map(|value| if largest > 0.0 { value / largest } else { 1.0 }).collect()
}

/// The weights by position that a dataset has in common, from the mean entropy at each position.
pub fn dataset_weights(mean_entropies: Vec<f64>) -> Vec<f64> {
    relative_to_largest(mean_entropies)
}

/// The first n weights of the dataset. A position that no text of it has, has no weight, and so no score.
pub fn first_weights(n: usize, dataset: &[f64]) -> Vec<f64> {
    (0..n).map(|index| dataset.get(index).copied().unwrap_or(f64::NAN)).collect()
}
