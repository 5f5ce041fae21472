//! Arithmetic as the instructions for bf16 have it: a subnormal number counts as zero, as an operand and as a result.

const MAGNITUDE: u32 = u32::MAX >> 1;

/// A subnormal number becomes zero of the same sign. In a form that the compiler vectorises.
#[inline(always)]
pub fn flushed(x: f32) -> f32 {
    let bits = x.to_bits();
    let kept = if bits & MAGNITUDE < f32::MIN_POSITIVE.to_bits() { !MAGNITUDE } else { u32::MAX };
    f32::from_bits(bits & kept)
}

/// `x w + sum`, rounded once. Whether a result is subnormal is decided after it was rounded to 24 bits: what rounds up to the
/// smallest normal number on the coarser grid of subnormal ones may be below it on that of normal ones.
#[inline(always)]
pub fn fused(x: f32, w: f32, sum: f32) -> f32 {
    let result = flushed(x).mul_add(flushed(w), sum);
    if is_smallest(result) { smallest_or_zero(x, w, sum, result) } else { flushed(result) }
}

/// Returns true if a result is subnormal or the smallest normal number: for all others, [`fused`] is the fused multiply-add.
#[inline(always)]
#[cfg(any(test, feature = "emulated-tiles"))]
pub fn is_tiny(x: f32) -> bool {
    let magnitude = x.to_bits() & MAGNITUDE;
    magnitude.wrapping_sub(1) < f32::MIN_POSITIVE.to_bits()
}

#[inline(always)]
fn is_smallest(x: f32) -> bool {
    x.abs() == f32::MIN_POSITIVE
}

/// Exact in f64: the product has 16 bits, and here the sum is of about the same size or the product far smaller.
#[cold]
fn smallest_or_zero(x: f32, w: f32, sum: f32, result: f32) -> f32 {
    // Half a unit in the last place below the smallest normal number.
    const LIMIT: f64 = f32::MIN_POSITIVE as f64 * (1.0 - 1.0 / (1u64 << 25) as f64);
    let exact = f64::from(flushed(x)) * f64::from(flushed(w)) + f64::from(sum);
    if exact.abs() < LIMIT { 0f32.copysign(result) } else { result }
}
