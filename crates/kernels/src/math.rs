//! Elementary functions on f32 that the compiler can vectorise.
//!
//! Straight-line arithmetic without calls, branches or fused multiply-adds: the result has the same bits on every
//! instruction set and for every vector width, so the path chosen at run time never changes a score.

const LOG2_E: f32 = std::f32::consts::LOG2_E;
// ln 2 in two parts: the first has few bits, so that `n * LN2_HI` is exact for the small n that occur.
const LN2_HI: f32 = 0.693_359_4;
const LN2_LO: f32 = -2.121_944_4e-4;
/// Adding and subtracting 1.5 * 2^23 rounds to the nearest integer, which is then in the low bits.
const ROUND: f32 = 12_582_912.0;
/// Below this, e^x is less than the smallest normal f32; the argument is clamped here, so that x = -inf gives a finite
/// product.
pub const EXP_MIN: f32 = -87.0;

/// e^x for x <= 0, within 2 units in the last place; NaN stays NaN. Arguments below -87 are treated as -87 (1.6e-38).
#[inline(always)]
pub fn exp_nonpositive(x: f32) -> f32 {
    // Written as a comparison because `max` would drop a NaN.
    exp_in_range(if x < EXP_MIN { EXP_MIN } else { x })
}

/// e^x for -87 <= x <= 87 by x = n ln 2 + r, |r| <= ln 2 / 2, and a Taylor-like minimax polynomial for e^r (Cephes).
#[inline(always)]
fn exp_in_range(x: f32) -> f32 {
    let rounded = x * LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = (x - n * LN2_HI) - n * LN2_LO;
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_2e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let e = (p * r) * r + r + 1.0;
    // The low bits of `rounded` are n in two's complement; shifted into the exponent, they multiply by 2^n.
    e * f32::from_bits((rounded.to_bits() << 23).wrapping_add(0x3f80_0000))
}

/// The error function within 4e-7 (absolute): `erfc` by a Chebyshev fit in 1 / (1 + |x| / 2) times e^(-x^2), which has
/// a relative error of 1.2e-7 (Press et al., Numerical Recipes); the rest is rounding.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let z = x.abs();
    let t = 1.0 / (1.0 + 0.5 * z);
    let p = 0.170_872_77;
    let p = p * t - 0.822_152_23;
    let p = p * t + 1.488_515_9;
    let p = p * t - 1.135_204;
    let p = p * t + 0.278_868_07;
    let p = p * t - 0.186_288_06;
    let p = p * t + 0.096_784_18;
    let p = p * t + 0.374_091_96;
    let p = p * t + 1.000_023_7;
    let p = p * t - 1.265_512_2;
    let erfc = t * exp_nonpositive(p - z * z);
    (1.0 - erfc).copysign(x)
}

/// tanh x = (1 - e^(-2|x|)) / (1 + e^(-2|x|)) with the sign of x; within 2e-7 (absolute).
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let e = exp_nonpositive(-2.0 * x.abs());
    ((1.0 - e) / (1.0 + e)).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> impl Iterator<Item = f32> {
        (-200_000..=200_000).map(|i| i as f32 * 5e-5)
    }

    #[test]
    fn exp_is_within_two_units_in_the_last_place() {
        let worst = (0..870_000).map(|i| i as f32 * -1e-4).fold(0f64, |worst, x| {
            let want = f64::from(x).exp();
            worst.max((f64::from(exp_nonpositive(x)) - want).abs() / want)
        });
        assert!(worst < 2.4e-7, "relative error {worst:e}");
        assert_eq!(exp_nonpositive(0.0), 1.0);
        assert!(exp_nonpositive(f32::NEG_INFINITY) < 2e-38);
        assert!(exp_nonpositive(f32::NAN).is_nan());
    }

    #[test]
    fn erf_and_tanh_are_within_their_stated_errors() {
        let worst = |f: fn(f32) -> f32, want: fn(f64) -> f64| {
            grid().fold(0f64, |w, x| w.max((f64::from(f(x)) - want(f64::from(x))).abs()))
        };
        let erf_error = worst(erf, statrs::function::erf::erf);
        let tanh_error = worst(tanh, f64::tanh);
        assert!(erf_error < 4e-7, "erf {erf_error:e}");
        assert!(tanh_error < 2e-7, "tanh {tanh_error:e}");
        assert!(erf(f32::NAN).is_nan() && tanh(f32::NAN).is_nan());
    }
}
