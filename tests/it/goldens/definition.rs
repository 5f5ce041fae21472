//! The scores by their definitions, in f64 from the statistics of the goldens: for what the goldens leave null, and to see
//! that both mean the same elsewhere.

use super::cases::{Base, Case, Family, Weights};

/// The statistics of a text's n >= 1 scored tokens.
pub struct Tokens {
    pub lp: Vec<f64>,
    pub mu: Vec<f64>,
    pub sigma: Vec<f64>,
    /// Of the reference model.
    pub reference: Option<Vec<f64>>,
    pub zlib_bytes: f64,
}

impl Tokens {
    /// The score; `None` if it takes more than these tokens.
    pub fn score(&self, case: &Case) -> Option<f64> {
        let values = self.values(case.base)?;
        let weighted: Vec<f64> = values.iter().zip(self.weights(case.weights)).map(|(v, w)| v * w).collect();
        let selected = match case.base {
            Base::MinK(k) | Base::MinKPlusPlus(k) => {
                let seen = if case.weights == Weights::Before { &weighted } else { &values };
                lowest(seen, ((values.len() as f64 * k) as usize).max(1))
            }
            _ => (0..values.len()).collect(),
        };
        let mean = selected.iter().map(|&at| weighted[at]).sum::<f64>() / selected.len() as f64;
        Some(if case.base == Base::Zlib { mean / self.zlib_bytes } else { mean })
    }

    fn values(&self, base: Base) -> Option<Vec<f64>> {
        match base {
            Base::Loss | Base::Zlib | Base::MinK(_) => Some(self.lp.clone()),
            Base::Ref => Some(self.lp.iter().zip(self.reference.as_ref()?).map(|(own, other)| own - other).collect()),
            Base::MinKPlusPlus(_) => {
                let moments = self.mu.iter().zip(&self.sigma);
                Some(self.lp.iter().zip(moments).map(|(lp, (mu, sigma))| (lp - mu) / sigma).collect())
            }
            Base::Lowercase => None,
        }
    }

    fn weights(&self, weights: Weights) -> Vec<f64> {
        let n = self.lp.len();
        let decay = |family: Family, alpha: f64| -> Vec<f64> {
            let way = |at: usize| at as f64 / (n - 1) as f64;
            let weight = |at: usize| match family {
                _ if n == 1 => 1.0,
                Family::Linear => 1.0 - alpha * way(at),
                Family::Exponential => (-alpha * at as f64).exp(),
                Family::Polynomial => (1.0 - way(at)).powf(alpha),
            };
            (0..n).map(weight).collect()
        };
        match weights {
            Weights::None => vec![1.0; n],
            Weights::Decay(family, alpha) => decay(family, alpha),
            Weights::Before => decay(Family::Linear, 1.0),
            Weights::Reverse => decay(Family::Linear, 1.0).into_iter().rev().collect(),
            Weights::Slope => decay(Family::Linear, self.slope()),
        }
    }

    /// Least-squares slope of `-lp_t` on t; 0 for one token.
    pub fn slope(&self) -> f64 {
        let n = self.lp.len() as f64;
        let (middle, mean) = ((n - 1.0) / 2.0, self.lp.iter().sum::<f64>() / n);
        let away = |at: usize| at as f64 - middle;
        let above: f64 = self.lp.iter().enumerate().map(|(at, lp)| away(at) * (mean - lp)).sum();
        let below: f64 = (0..self.lp.len()).map(|at| away(at) * away(at)).sum();
        if below == 0.0 { 0.0 } else { above / below }
    }
}

/// The places of the k lowest values, of equal ones the earlier first.
fn lowest(values: &[f64], k: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..values.len()).collect();
    places.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    places.truncate(k);
    places
}
