// The selective scan, one pass over time, with the same terms as the CPU kernel. Per channel and state n: h = e^(dt a)
// h + dt x b[n], and y = (sum_n c[n] h[n] + d x) silu(gate).
//
// A block processes one sequence for CHANNELS channels of one head, STEPS tokens at a time through shared memory. The
// states of a channel stay in the registers of LANES neighbouring threads, PER_LANE in each (state n is in lane n %
// LANES); each thread has EACH channels, which share its reads of b and c. At least five blocks share a multiprocessor;
// without that launch bound, the compiler limits registers until it spills.

#define PLACES (THREADS / LANES)
#define CHANNELS (PLACES * EACH)
#define PADDED (LANES * PER_LANE)
// A time step per channel can be read once for all channels of a thread only if there is one channel.
static_assert(PER_HEAD || EACH == 1, "with a time step per channel, a thread has one channel");
#define WHOLE_WARP 0xffffffffu

// Columns of a tensor [tokens, ..], indexed by token.
struct Columns {
    const float *data;
    u64 stride;
    __device__ __forceinline__ float value(u64 token, u32 column) const { return data[token * stride + column]; }
};

struct Weights {
    // Rates of decay, [STATES, channels], or [heads] if there is a time step per head.
    const float *a;
    // By channel, or by head.
    const float *d, *time_bias;
    float least, most;
};

// CHANNELS channels of a head, from `column` of the tensors; `width` of them exist.
struct Block {
    u32 head, column, width;

    __device__ __forceinline__ u32 step_of(u32 channel) const { return PER_HEAD ? head : column + channel; }
};

struct Shared {
    float x[STEPS][CHANNELS], y[STEPS][CHANNELS];
    float b[STEPS][PADDED], c[STEPS][PADDED];
    // A time step and its decay for all channels, or a time step for each.
#if PER_HEAD
    float dt[STEPS], decay[STEPS];
#else
    float dt[STEPS][CHANNELS];
#endif
};

__device__ __forceinline__ float time_step(const Columns &steps, const Weights &weights, u64 token, u32 step) {
    return clamped(softplus(steps.value(token, step) + weights.time_bias[step]), weights.least, weights.most);
}

// Channels and states that do not exist are zeros, which do not affect the others.
__device__ __forceinline__ void load(Shared &shared, const Columns &x, const Columns &steps, const Columns &b,
                                     const Columns &c, const Weights &weights, const Block &block, u64 first,
                                     u32 count, u32 mixing) {
    for (u32 i = threadIdx.x; i < count * CHANNELS; i += THREADS) {
        u32 t = i / CHANNELS, channel = i % CHANNELS;
        bool exists = channel < block.width;
        shared.x[t][channel] = exists ? x.value(first + t, block.column + channel) : 0.0f;
#if !PER_HEAD
        shared.dt[t][channel] = exists ? time_step(steps, weights, first + t, block.step_of(channel)) : 0.0f;
#endif
    }
#if PER_HEAD
    for (u32 t = threadIdx.x; t < count; t += THREADS) {
        shared.dt[t] = time_step(steps, weights, first + t, block.head);
        shared.decay[t] = exp_nonpositive(shared.dt[t] * weights.a[block.head]);
    }
#endif
    for (u32 i = threadIdx.x; i < count * PADDED; i += THREADS) {
        u32 t = i / PADDED, n = i % PADDED;
        shared.b[t][n] = n < STATES ? b.value(first + t, mixing + n) : 0.0f;
        shared.c[t][n] = n < STATES ? c.value(first + t, mixing + n) : 0.0f;
    }
}

// Advances this thread's states by one token and reads them: y[e] is this lane's share of sum_n c[n] h[n].
__device__ __forceinline__ void advance(float (&h)[EACH][PER_LANE], float (&y)[EACH], const float (&rates)[PER_LANE],
                                        const Shared &shared, u32 t, u32 lane, u32 place) {
    float inflow[EACH], dt = 0.0f;
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        u32 channel = place + e * PLACES;
#if PER_HEAD
        dt = shared.dt[t];
#else
        dt = shared.dt[t][channel];
#endif
        inflow[e] = dt * shared.x[t][channel];
        y[e] = 0.0f;
    }
#pragma unroll
    for (int k = 0; k < PER_LANE; ++k) {
        float b = shared.b[t][lane + k * LANES], c = shared.c[t][lane + k * LANES];
#if PER_HEAD
        float decay = shared.decay[t];
#else
        float decay = exp_nonpositive(dt * rates[k]);
#endif
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            h[e][k] = h[e][k] * decay + inflow[e] * b;
            y[e] += h[e][k] * c;
        }
    }
}

__device__ __forceinline__ void store(float *out, const Shared &shared, const Columns &gate, const Weights &weights,
                                      const Block &block, u64 first, u32 count, u32 channels) {
    for (u32 i = threadIdx.x; i < count * CHANNELS; i += THREADS) {
        u32 t = i / CHANNELS, channel = i % CHANNELS, column = block.column + channel;
        if (channel < block.width) {
            float y = shared.y[t][channel] + weights.d[block.step_of(channel)] * shared.x[t][channel];
            out[(first + t) * channels + column] = y * silu(gate.value(first + t, column));
        }
    }
}

// `out` is [tokens, heads * head_dim]; `bounds` has the first token of every sequence and the one after its last; each
// sequence starts from an empty state. Block i processes sequence i / (blocks per sequence).
extern "C" __global__ void __launch_bounds__(THREADS, 5)
    selective_scan(const float *x, u64 x_stride, const float *gate, u64 gate_stride, const float *time_steps,
                   u64 time_stride, const float *b, u64 b_stride, const float *c, u64 c_stride, const float *a,
                   const float *d, const float *time_bias, float least, float most, const u32 *bounds, float *out,
                   u32 heads, u32 head_dim, u32 groups) {
    __shared__ Shared shared;
    u32 per_head_blocks = (head_dim + CHANNELS - 1) / CHANNELS, blocks = heads * per_head_blocks;
    u32 sequence = blockIdx.x / blocks, head = blockIdx.x % blocks / per_head_blocks;
    u32 first_channel = blockIdx.x % per_head_blocks * CHANNELS;
    Block block = {head, head * head_dim + first_channel, min(head_dim - first_channel, (u32)CHANNELS)};
    u32 channels = heads * head_dim, mixing = head / (heads / groups) * STATES;
    Weights weights = {a, d, time_bias, least, most};
    Columns xs = {x, x_stride}, gates = {gate, gate_stride}, steps = {time_steps, time_stride};
    Columns bs = {b, b_stride}, cs = {c, c_stride};

    u32 lane = threadIdx.x % LANES, place = threadIdx.x / LANES;
    float h[EACH][PER_LANE] = {}, rates[PER_LANE] = {};
#if !PER_HEAD
#pragma unroll
    for (int k = 0; k < PER_LANE; ++k) {
        u32 n = lane + k * LANES;
        if (n < STATES && place < block.width) rates[k] = a[(u64)n * channels + block.column + place];
    }
#endif
    u32 end = bounds[2 * sequence + 1];
    for (u32 first = bounds[2 * sequence]; first < end; first += STEPS) {
        u32 count = min(end - first, (u32)STEPS);
        load(shared, xs, steps, bs, cs, weights, block, first, count, mixing);
        __syncthreads();
        for (u32 t = 0; t < count; ++t) {
            float y[EACH];
            advance(h, y, rates, shared, t, lane, place);
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
#pragma unroll
                for (int offset = LANES / 2; offset > 0; offset /= 2) {
                    y[e] += __shfl_xor_sync(WHOLE_WARP, y[e], offset);
                }
                if (lane == 0) shared.y[t][place + e * PLACES] = y[e];
            }
        }
        __syncthreads();
        store(out, shared, gates, weights, block, first, count, channels);
        // The next tokens overwrite the shared memory.
        __syncthreads();
    }
}
