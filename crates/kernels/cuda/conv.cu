// The causal convolution before a selective scan: out[t, c] = silu(bias[c] + sum_k taps[k, c] x[t - K + 1 + k, c]),
// where inputs before the start of the sequence are zero. One block per token and THREADS channels.

extern "C" __global__ void __launch_bounds__(THREADS)
    causal_conv(const float *x, u64 stride, const float *taps, const float *bias, const u32 *positions, float *out,
                u32 channels, u32 kernel) {
    u32 channel = blockIdx.y * THREADS + threadIdx.x;
    if (channel >= channels) return;
    u64 token = blockIdx.x;
    float sum = bias[channel];
    // The last tap belongs to the token itself, the one before it to the previous token, and so on within the sequence.
    u32 seen = min(kernel, positions[token] + 1);
    for (u32 back = 0; back < seen; ++back) {
        sum += taps[(u64)(kernel - 1 - back) * channels + channel] * x[(token - back) * stride + channel];
    }
    out[token * channels + channel] = silu(sum);
}
