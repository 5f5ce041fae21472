//! SiLU and softplus, the nonlinearities of gates and time steps, in vectorisable code like that of [`super::math`].

use super::math::exp_nonpositive;

/// Terms of the series for `ln(1 + u)`: the first omitted one is below 2e-8 of the sum for every u in [0, 1].
pub const LN_1P_TERMS: usize = 7;

/// x / (1 + e^-x), with a relative error below 4e-7 (down to -80, where it is 1e-33); NaN stays NaN.
#[inline(always)]
pub fn silu(x: f32) -> f32 {
    let e = exp_nonpositive(-x.abs());
    let numerator = if x < 0.0 { x * e } else { x };
    numerator / (1.0 + e)
}

/// 1 / (1 + e^-x), with a relative error below 4e-7 (down to -80); NaN stays NaN.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    let e = exp_nonpositive(-x.abs());
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

/// ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|), with a relative error below 4e-7 (down to x = -87); NaN stays NaN.
///
/// The logarithm is 2 artanh s with s = u / (2 + u), so that small u keep all their digits.
#[inline(always)]
pub fn softplus(x: f32) -> f32 {
    let u = exp_nonpositive(-x.abs());
    let s = u / (2.0 + u);
    let square = s * s;
    let mut series = 0.0;
    for term in (0..LN_1P_TERMS).rev() {
        series = series * square + 1.0 / (2 * term + 1) as f32;
    }
    // Written as a comparison, so that NaN stays NaN.
    let linear = if x < 0.0 { 0.0 } else { x };
    linear + 2.0 * s * series
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest relative error over [-80, 80].
    fn worst(f: fn(f32) -> f32, want: fn(f64) -> f64) -> f64 {
        let points = (-800_000..=800_000).map(|i| i as f32 * 1e-4).filter(|&x| x != 0.0);
        points.fold(0.0, |worst, x| {
            let want = want(f64::from(x));
            worst.max((f64::from(f(x)) - want).abs() / want.abs())
        })
    }

    #[test]
    fn both_are_within_their_stated_relative_errors() {
        let silu_error = worst(silu, |x| x / (1.0 + (-x).exp()));
        let softplus_error = worst(softplus, |x| x.exp().ln_1p());
        assert!(silu_error < 4e-7, "silu {silu_error:e}");
        assert!(softplus_error < 4e-7, "softplus {softplus_error:e}");
    }

    #[test]
    fn the_ends_of_the_range_are_sound() {
        assert_eq!((silu(0.0), silu(1e30)), (0.0, 1e30));
        assert!(silu(-1e30) <= 0.0 && silu(-1e4).abs() < 1e-30);
        assert!((softplus(0.0) - std::f32::consts::LN_2).abs() < 1e-7);
        assert_eq!((softplus(1e30), softplus(f32::INFINITY)), (1e30, f32::INFINITY));
        assert!((0.0..1e-37).contains(&softplus(f32::NEG_INFINITY)));
        assert!(silu(f32::NAN).is_nan() && softplus(f32::NAN).is_nan());
    }
}
