//! Logistic regression with a ridge penalty.

use super::measures::StandardisedRows;

/// The ridge penalty: half of it times the sum of the squared weights is added to the loss. The intercept is free.
const RIDGE: f64 = 1.0;

/// The norm of the gradient at which a fit ends, as a share of the norm where it begins.
const TOLERANCE: f64 = 1e-8;

/// The share of the gradient that conjugate gradients leave over in a step.
const STEP_TOLERANCE: f64 = 0.1;

/// The share of the loss that a step may seem to add by rounding.
const ROUNDING: f64 = 1e-13;

const MAX_STEPS: usize = 30;
const MAX_INNER_STEPS: usize = 200;
const MAX_HALVINGS: usize = 20;

/// The log-odds of each of `scored` rows being positive, by the regression that is fitted on `training` rows.
///
/// Minimises `sum ln(1 + exp(-y f(x))) + |w|^2 / 2` with `f(x) = w x + b` and y of 1 or -1, by Newton's method with
/// conjugate gradients. The minimum is unique where both labels occur. The same result on any number of threads.
pub(super) fn log_odds(rows: &StandardisedRows, labels: &[bool], training: &[usize], scored: &[usize]) -> Vec<f64> {
    let fit = Fit { rows, labels, training };
    let weights = fit.minimum();
    scored.iter().map(|&row| fit.log_odds(row, &weights)).collect()
}

struct Fit<'a> {
    rows: &'a StandardisedRows,
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
            let (gradient, curvatures) = self.gradient(&weights);
            let norm = dot(&gradient, &gradient).sqrt();
            if norm <= TOLERANCE * *first_norm.get_or_insert(norm) {
                break;
            }
            let step = self.newton_step(&gradient, &curvatures, norm);
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

    /// The gradient, and for each training row the curvature of its loss.
    fn gradient(&self, weights: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let width = self.rows.width();
        let mut gradient: Vec<f64> = weights.iter().map(|weight| RIDGE * weight).collect();
        gradient[width] = 0.0;
        let mut curvatures = Vec::with_capacity(self.training.len());
        for &row in self.training {
            let probability = 1.0 / (1.0 + (-self.log_odds(row, weights)).exp());
            let error = probability - f64::from(u8::from(self.labels[row]));
            add(&mut gradient[..width], error, self.rows.row(row));
            gradient[width] += error;
            curvatures.push(probability * (1.0 - probability));
        }
        (gradient, curvatures)
    }

    /// The step that Newton's method takes against the gradient, by conjugate gradients.
    fn newton_step(&self, gradient: &[f64], curvatures: &[f64], norm: f64) -> Vec<f64> {
        let mut step = vec![0.0; gradient.len()];
        let mut residual: Vec<f64> = gradient.iter().map(|slope| -slope).collect();
        let mut direction = residual.clone();
        let mut square = norm * norm;
        for _ in 0..MAX_INNER_STEPS {
            let curved = self.curve(&direction, curvatures);
            let curvature = dot(&direction, &curved);
            if curvature <= 0.0 {
                break;
            }
            let scale = square / curvature;
            add(&mut step, scale, &direction);
            add(&mut residual, -scale, &curved);
            let next = dot(&residual, &residual);
            if next.sqrt() <= STEP_TOLERANCE.min(norm.sqrt()) * norm {
                break;
            }
            let momentum = next / square;
            direction.iter_mut().zip(&residual).for_each(|(old, new)| *old = new + momentum * *old);
            square = next;
        }
        step
    }

    /// The matrix of second derivatives times a direction.
    fn curve(&self, direction: &[f64], curvatures: &[f64]) -> Vec<f64> {
        let width = self.rows.width();
        let mut curved: Vec<f64> = direction.iter().map(|value| RIDGE * value).collect();
        curved[width] = 0.0;
        for (&row, curvature) in self.training.iter().zip(curvatures) {
            let factor = curvature * self.log_odds(row, direction);
            add(&mut curved[..width], factor, self.rows.row(row));
            curved[width] += factor;
        }
        curved
    }
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
