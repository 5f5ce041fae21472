//! Logistic regression with a ridge penalty.

use super::features::FeatureRows;

/// The ridge penalty: half of it times the sum of the squared weights is added to the loss. The intercept is free.
const RIDGE: f64 = 1.0;

/// The norm of the gradient at which a fit ends, as a share of the norm where it begins.
const TOLERANCE: f64 = 1e-10;

/// The share of the loss that a step may seem to add by rounding.
const ROUNDING: f64 = 1e-13;

const MAX_STEPS: usize = 30;
const MAX_HALVINGS: usize = 20;

/// A fitted regression.
pub(super) struct LogisticFit {
    pub weights: Vec<f64>,
    intercept: f64,
}

impl LogisticFit {
    /// Fits the regression on the `training` rows: minimises `sum ln(1 + exp(-y f(x))) + |w|^2 / 2` with `f(x) = w x + b` and y of 1 or
    /// -1, by Newton's method. The minimum is unique where both labels occur. The same result on any number of threads.
    pub fn new(rows: &FeatureRows, labels: &[bool], training: &[usize]) -> Self {
        let mut weights = Fit { rows, labels, training }.minimum();
        let intercept = weights.pop().unwrap_or(0.0);
        Self { weights, intercept }
    }

    /// The log-odds of each of `scored` rows being positive.
    pub fn log_odds(&self, rows: &FeatureRows, scored: &[usize]) -> Vec<f64> {
        scored.iter().map(|&row| dot(rows.row(row), &self.weights) + self.intercept).collect()
    }
}

struct Fit<'a> {
    rows: &'a FeatureRows,
    labels: &'a [bool],
    training: &'a [usize],
}

impl Fit<'_> {
    /// The weights, and the intercept after them.
    fn minimum(&self) -> Vec<f64> {
        let mut weights = vec![0.0; self.rows.width() + 1];
        let mut loss = self.loss(&weights);
        let mut first_norm = None;
        for _ in 0..MAX_STEPS {
            let (gradient, curvature) = self.derivatives(&weights);
            let norm = dot(&gradient, &gradient).sqrt();
            if norm <= TOLERANCE * *first_norm.get_or_insert(norm) {
                break;
            }
            let step: Vec<f64> = solve(curvature, &gradient).into_iter().map(|against| -against).collect();
            let slope = dot(&gradient, &step);
            let mut scale = 1.0;
            let improved = (0..MAX_HALVINGS).find_map(|_| {
                let tried: Vec<f64> = weights.iter().zip(&step).map(|(weight, step)| weight + scale * step).collect();
                let tried_loss = self.loss(&tried);
                // Near the minimum the loss falls by less than it is rounded by.
                let is_lower = tried_loss <= loss + 1e-4 * scale * slope + ROUNDING * loss;
                scale /= 2.0;
                is_lower.then_some((tried, tried_loss))
            });
            // Where rounding leaves nothing to gain.
            let Some((tried, tried_loss)) = improved else { break };
            (weights, loss) = (tried, tried_loss);
        }
        weights
    }

    fn log_odds(&self, row: usize, weights: &[f64]) -> f64 {
        let (intercept, weights) = split(weights);
        dot(self.rows.row(row), weights) + intercept
    }

    fn loss(&self, weights: &[f64]) -> f64 {
        let of_row = |&row: &usize| {
            let odds = self.log_odds(row, weights);
            let margin = if self.labels[row] { odds } else { -odds };
            // ln(1 + exp(-margin)) without overflow.
            (-margin.abs()).exp().ln_1p() + (-margin).max(0.0)
        };
        let (_, free) = split(weights);
        self.training.iter().map(of_row).sum::<f64>() + RIDGE / 2.0 * dot(free, free)
    }

    /// The gradient, and the lower triangle of the matrix of second derivatives by rows.
    fn derivatives(&self, weights: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
        let width = self.rows.width();
        let mut gradient: Vec<f64> = weights.iter().map(|weight| RIDGE * weight).collect();
        gradient[width] = 0.0;
        let mut curvature: Vec<Vec<f64>> = (0..=width).map(|row| vec![0.0; row + 1]).collect();
        (0..width).for_each(|row| curvature[row][row] = RIDGE);
        for &row in self.training {
            let features = self.rows.row(row);
            let probability = 1.0 / (1.0 + (-self.log_odds(row, weights)).exp());
            let error = probability - f64::from(u8::from(self.labels[row]));
            add(&mut gradient[..width], error, features);
            gradient[width] += error;
            let spread = probability * (1.0 - probability);
            for (sums, &feature) in curvature.iter_mut().zip(features) {
                add(sums, spread * feature, features);
            }
            add(&mut curvature[width], spread, features);
            curvature[width][width] += spread;
        }
        (gradient, curvature)
    }
}

/// Solves a system of equations with a positive definite matrix, given by the rows of its lower triangle (Cholesky).
fn solve(mut matrix: Vec<Vec<f64>>, right: &[f64]) -> Vec<f64> {
    let mut solution = right.to_vec();
    for row in 0..right.len() {
        let (above, below) = matrix.split_at_mut(row);
        let current = &mut below[0];
        for (column, other) in above.iter().enumerate() {
            current[column] = (current[column] - dot(&current[..column], &other[..column])) / other[column];
        }
        current[row] = (current[row] - dot(&current[..row], &current[..row])).sqrt();
        solution[row] = (solution[row] - dot(&current[..row], &solution[..row])) / current[row];
    }
    for row in (0..right.len()).rev() {
        solution[row] /= matrix[row][row];
        let value = solution[row];
        add(&mut solution[..row], -value, &matrix[row][..row]);
    }
    solution
}

/// The intercept and the weights before it.
fn split(weights: &[f64]) -> (f64, &[f64]) {
    weights.split_last().map_or((0.0, &[]), |(last, rest)| (*last, rest))
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(sums: &mut [f64], factor: f64, values: &[f64]) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += factor * value);
}

#[cfg(test)]
mod tests {
    use super::solve;

    #[test]
    fn a_system_is_solved() {
        // 4 2 1 | 2 5 3 | 1 3 6 times 1, -2, 3.
        let solution = solve(vec![vec![4.0], vec![2.0, 5.0], vec![1.0, 3.0, 6.0]], &[3.0, 1.0, 13.0]);
        for (value, expected) in solution.iter().zip([1.0, -2.0, 3.0]) {
            assert!((value - expected).abs() < 1e-14, "{solution:?}");
        }
    }
}
