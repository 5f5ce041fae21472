//! The distribution over a row of logits, or over a part of the vocabulary: maximum, weight, mean and squares, joined by the
//! pairwise update of Chan, Golub and LeVeque (1983).

use super::math::{EXP_MIN, exp_nonpositive};

/// Number of parallel partial sums; fixed, so that sums have the same order on every machine.
const LANES: usize = 16;

/// The distribution over a part of the vocabulary, with weights relative to `e^max`.
#[derive(Clone, Copy, Debug)]
pub struct Partial {
    pub max: f64,
    /// Sum of `e^(x - max)`.
    pub weight: f64,
    /// Weighted mean of x.
    pub mean: f64,
    /// Weighted sum of squared deviations from the mean.
    pub squares: f64,
}

impl Partial {
    pub fn join(self, other: Self) -> Self {
        // A part with impossible tokens only contributes nothing; the distance of two such maxima would be NaN.
        if other.weight == 0.0 {
            return self;
        }
        if self.weight == 0.0 {
            return other;
        }
        let max = self.max.max(other.max);
        let (a, b) = ((self.max - max).exp(), (other.max - max).exp());
        let (wa, wb) = (self.weight * a, other.weight * b);
        let weight = wa + wb;
        let delta = other.mean - self.mean;
        Self {
            max,
            weight,
            mean: self.mean + delta * wb / weight,
            squares: self.squares * a + other.squares * b + delta * delta * wa * wb / weight,
        }
    }
}

/// Passes over a row in cache: the maximum; then weights, their sum and mean; then squares about that mean.
#[inline(always)]
pub fn reduce_row(row: &[f32]) -> Partial {
    let max = maximum(row);
    if max == f32::NEG_INFINITY {
        // Impossible tokens only: no weight, unless there is a NaN among them, which must be propagated.
        let weight = row.iter().map(|&x| if x.is_nan() { f64::NAN } else { 0.0 }).sum();
        return Partial { max: f64::NEG_INFINITY, weight, mean: 0.0, squares: 0.0 };
    }
    // The distance from the maximum, clamped where its weight vanishes, so that 0 * inf cannot arise.
    let distance = |x: f32| {
        let y = x - max;
        if y < EXP_MIN { EXP_MIN } else { y }
    };
    let (weight, product) = sums(row, |x| {
        let y = distance(x);
        let e = exp_nonpositive(y);
        (e, e * y)
    });
    let mean = product / weight;
    let shift = mean as f32;
    // `shift` is the mean rounded to f32; the first moment about it corrects both results.
    let (moment, squares) = sums(row, |x| {
        let y = distance(x);
        let (e, d) = (exp_nonpositive(y), y - shift);
        (e * d, e * d * d)
    });
    let offset = moment / weight;
    Partial {
        max: f64::from(max),
        weight,
        mean: f64::from(max) + f64::from(shift) + offset,
        squares: (squares - offset * moment).max(0.0),
    }
}

/// The largest element and its index, of equal ones the first; NaN and 0 if one of them is NaN, and for an empty row minus
/// infinity and 0.
#[inline(always)]
pub fn first_maximum(row: &[f32]) -> (f32, usize) {
    if row.iter().any(|x| x.is_nan()) {
        return (f32::NAN, 0);
    }
    let max = maximum(row);
    (max, row.iter().position(|&x| x == max).unwrap_or(0))
}

/// The largest element; a NaN is ignored here and propagated by the sums.
#[inline(always)]
fn maximum(row: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (blocks, rest) = row.as_chunks::<LANES>();
    for block in blocks {
        // Indexed like `sums`: in release builds `zip` remains a call per block.
        for i in 0..LANES {
            lanes[i] = larger(lanes[i], block[i]);
        }
    }
    lanes.iter().chain(rest).fold(f32::NEG_INFINITY, |a, &b| larger(a, b))
}

/// Sums of both results of `term` over a row: in f32 within a lane (at most about 35 terms), in f64 across lanes.
#[inline(always)]
fn sums(row: &[f32], term: impl Fn(f32) -> (f32, f32)) -> (f64, f64) {
    let (mut a, mut b) = ([0f32; LANES], [0f32; LANES]);
    let (blocks, rest) = row.as_chunks::<LANES>();
    for block in blocks {
        for i in 0..LANES {
            let (x, y) = term(block[i]);
            a[i] += x;
            b[i] += y;
        }
    }
    for (i, &x) in rest.iter().enumerate() {
        let (x, y) = term(x);
        a[i] += x;
        b[i] += y;
    }
    let total = |lanes: [f32; LANES]| lanes.iter().map(|&x| f64::from(x)).sum();
    (total(a), total(b))
}
