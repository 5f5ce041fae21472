// Reduces each row of a tile of logits to what describes its distribution: its maximum, the sum of weights e^(x - max),
// the weighted mean of x - max, the weighted squares about that mean, and the logit of the observed token.
//
// One pass over memory. A thread loads 16 logits at a time into registers, reduces them in the three steps of the CPU
// kernel (maximum; weights and mean; squares about the mean) and joins the result to what it has. Threads are joined by
// the same update (Chan, Golub and LeVeque 1983). Two sums are never subtracted: distances from a maximum are at most
// 0, so that means are sums of one sign, and squares are sums of squares.

// Distances from a maximum are clamped at EXP_MIN, as on the CPU: all logits below it have the same negligible weight,
// and 0 * inf cannot arise.

// The maximum of nothing, and of impossible tokens (-inf) only: finite, so that distances from it are numbers.
#define LOWEST -3.402823466e+38f
// Number of logits that a thread loads at once, in vectors of 16 bytes.
#define AT_ONCE 16
// Logits in a vector of 16 bytes.
#define VECTOR 4
#define WHOLE_WARP 0xffffffffu

struct Part {
    float max;
    // Sum of e^(x - max).
    float weight;
    // Weighted mean of x - max.
    float mean;
    // Weighted sum of squared deviations from the mean.
    float squares;
};

__device__ __forceinline__ Part empty() {
    Part part = {LOWEST, 0.0f, 0.0f, 0.0f};
    return part;
}

// Joins two parts. A NaN in either stays in the weight.
__device__ __forceinline__ Part join(Part a, Part b) {
    Part both;
    both.max = fmaxf(a.max, b.max);
    float below_a = larger_or_nan(a.max - both.max, EXP_MIN), below_b = larger_or_nan(b.max - both.max, EXP_MIN);
    float scale_a = __expf(below_a), scale_b = __expf(below_b);
    float weight_a = a.weight * scale_a, weight_b = b.weight * scale_b;
    both.weight = weight_a + weight_b;
    float inverse = both.weight > 0.0f ? __fdividef(1.0f, both.weight) : 0.0f;
    float mean_a = a.mean + below_a, mean_b = b.mean + below_b;
    float share_a = weight_a * inverse, share_b = weight_b * inverse;
    float difference = mean_b - mean_a;
    both.mean = share_a * mean_a + share_b * mean_b;
    both.squares = a.squares * scale_a + b.squares * scale_b + difference * difference * weight_a * share_b;
    return both;
}

template <int COUNT>
__device__ __forceinline__ Part reduce(const float (&x)[COUNT]) {
    float max = LOWEST;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) max = fmaxf(max, x[i]);
    float below[COUNT], weights[COUNT], weight = 0.0f, moment = 0.0f;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        below[i] = larger_or_nan(x[i] - max, EXP_MIN);
        weights[i] = __expf(below[i]);
        weight += weights[i];
        moment += weights[i] * below[i];
    }
    float mean = __fdividef(moment, weight), squares = 0.0f;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        float away = below[i] - mean;
        squares += weights[i] * away * away;
    }
    Part part = {max, weight, mean, squares};
    return part;
}

// One row, and what turns the product into logits.
struct Row {
    const float *product;
    // By column, or null.
    const float *bias;
    // Logits x become cap tanh(x / cap), unless cap is 0.
    float cap, inverse_cap;

    __device__ __forceinline__ float capped(float x) const { return cap * tanhf(x * inverse_cap); }

    __device__ __forceinline__ float logit(u32 column) const {
        float x = product[column];
        if (bias) x += bias[column];
        return cap > 0.0f ? capped(x) : x;
    }

    __device__ __forceinline__ Part one(u32 column) const {
        float x[1] = {logit(column)};
        return reduce<1>(x);
    }

    // Reduces VECTORS vectors, `stride` vectors apart, the first of which starts at `column`.
    template <int VECTORS>
    __device__ __forceinline__ Part some(u32 column, u32 stride) const {
        float x[VECTORS * VECTOR];
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            uint4 words = __ldcs(reinterpret_cast<const uint4 *>(product + column + v * stride * VECTOR));
            x[v * VECTOR] = __uint_as_float(words.x);
            x[v * VECTOR + 1] = __uint_as_float(words.y);
            x[v * VECTOR + 2] = __uint_as_float(words.z);
            x[v * VECTOR + 3] = __uint_as_float(words.w);
        }
        if (bias) {
#pragma unroll
            for (int i = 0; i < VECTORS * VECTOR; ++i) x[i] += bias[column + i / VECTOR * stride * VECTOR + i % VECTOR];
        }
        if (cap > 0.0f) {
#pragma unroll
            for (int i = 0; i < VECTORS * VECTOR; ++i) x[i] = capped(x[i]);
        }
        return reduce(x);
    }

    // The part of the row that thread `lane` of `lanes` reduces.
    __device__ __forceinline__ Part share(u32 lane, u32 lanes, u32 columns) const {
        const u32 vectors = AT_ONCE / VECTOR;
        // Rows have any alignment: the elements before the first whole vector and after the last are processed one by
        // one.
        u32 past = (u32)(reinterpret_cast<u64>(product) % 16);
        u32 head = min(columns, (16 - past) % 16 / (u32)sizeof(float));
        u32 whole = (columns - head) / VECTOR, tail = head + whole * VECTOR;
        Part part = empty();
        u32 v = lane;
        for (; v + (vectors - 1) * lanes < whole; v += vectors * lanes) {
            part = join(part, some<vectors>(head + v * VECTOR, lanes));
        }
        for (; v < whole; v += lanes) part = join(part, some<1>(head + v * VECTOR, lanes));
        if (lane < head) part = join(part, one(lane));
        if (lane < columns - tail) part = join(part, one(tail + lane));
        return part;
    }
};

__device__ __forceinline__ Part join_warp(Part part) {
    for (int offset = 16; offset > 0; offset /= 2) {
        Part other;
        other.max = __shfl_xor_sync(WHOLE_WARP, part.max, offset);
        other.weight = __shfl_xor_sync(WHOLE_WARP, part.weight, offset);
        other.mean = __shfl_xor_sync(WHOLE_WARP, part.mean, offset);
        other.squares = __shfl_xor_sync(WHOLE_WARP, part.squares, offset);
        part = join(part, other);
    }
    return part;
}

// Blocks are (lanes of a row, rows), where lanes are whole warps; `product` is [rows, columns], and column 0 is entry
// `first` of the vocabulary. For each row, `out` receives maximum, weight, mean, squares and the target logit, which is
// NaN if another tile holds it.
extern "C" __global__ void __launch_bounds__(THREADS)
    row_statistics(const float *product, const float *bias, float cap, const u32 *targets, float *out, u32 rows,
                   u32 columns, u32 first) {
    __shared__ Part warp_parts[THREADS / 32];
    // Threads beyond the last row process it again, so that all of them reach the barrier below; they write the same
    // values.
    u32 index = min(blockIdx.x * blockDim.y + threadIdx.y, rows - 1);
    Row row = {product + (u64)index * columns, bias, cap, 1.0f / cap};
    u32 lane = threadIdx.x, warps = blockDim.x / 32;
    Part part = join_warp(row.share(lane, blockDim.x, columns));
    if (warps > 1) {
        Part *row_parts = warp_parts + threadIdx.y * warps;
        if (lane % 32 == 0) row_parts[lane / 32] = part;
        __syncthreads();
        part = join_warp(lane < warps ? row_parts[lane] : empty());
    }
    if (lane != 0) return;
    float *result = out + (u64)index * 5;
    u32 target = targets[index] - first;
    // Impossible tokens alone have no weight, unless there is a NaN among them.
    bool impossible = part.max == LOWEST;
    result[0] = impossible ? __uint_as_float(0xff800000u) : part.max;
    result[1] = impossible ? part.weight * 0.0f : part.weight;
    result[2] = impossible ? 0.0f : part.mean;
    result[3] = impossible ? 0.0f : part.squares;
    result[4] = target < columns ? row.logit(target) : __uint_as_float(0x7fc00000u);
}
