// The nonlinearities of gates and time steps, with the formulas of the CPU kernels; NaN stays NaN.

// e^x for x <= 0, clamped at EXP_MIN.
__device__ __forceinline__ float exp_nonpositive(float x) { return expf(x < EXP_MIN ? EXP_MIN : x); }

// x / (1 + e^-x)
__device__ __forceinline__ float silu(float x) {
    float e = exp_nonpositive(-fabsf(x));
    return (x < 0.0f ? x * e : x) / (1.0f + e);
}

// ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|), with the logarithm as 2 artanh s, so that small values keep all their
// digits.
__device__ __forceinline__ float softplus(float x) {
    float u = exp_nonpositive(-fabsf(x)), s = u / (2.0f + u), square = s * s, series = 0.0f;
#pragma unroll
    for (int term = LN_1P_TERMS - 1; term >= 0; --term) series = series * square + 1.0f / (float)(2 * term + 1);
    return (x < 0.0f ? 0.0f : x) + 2.0f * s * series;
}

// The value clamped to the limits, by comparisons, so that NaN stays NaN.
__device__ __forceinline__ float clamped(float value, float least, float most) {
    value = value < least ? least : value;
    return value > most ? most : value;
}
