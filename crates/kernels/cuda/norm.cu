// Normalises segments of rows: (x - mean) / sqrt(variance + eps) * weight + bias, or, if RMS is 1,
// x / sqrt(mean(x^2) + eps) * weight.
//
// Blocks are (lanes of a segment, segments). A lane holds up to HELD elements in registers, or 8 if they cannot be
// loaded as vectors, while the mean, and then the squares about the mean, are summed; wider segments are read from
// memory for each of these sums and for the result. Which lane has which elements depends on the width, the number of
// lanes and the alignment only. Lanes are a power of two below 32, or whole warps; a block is whole warps. The squares
// of an RMS norm are about 0.

#define WHOLE_WARP 0xffffffffu

static_assert(HELD % 16 == 0, "a lane holds whole batches");

// The elements that a lane holds: fewer if they are loaded one by one, since each takes an address, too.
template <int WIDTH>
struct Held {
    static const int COUNT = WIDTH == 1 ? 8 : HELD;
};

template <typename In, typename Out>
struct Segment {
    const In *x;
    const F32 *weight, *bias;
    Out *out;
    // 0 after the last segment: lanes without elements take part in shuffles and barriers only.
    u32 width;
};

// The partial sums of warps. Each of the two sums has its own, so that neither overwrites what is still to be read.
struct Shared {
    float sums[THREADS / 32], squares[THREADS / 32];
};

// The sum over all lanes of a segment, in each of them.
__device__ __forceinline__ float sum_lanes(float sum, float *warp_sums) {
    for (u32 offset = min(blockDim.x, 32u) / 2; offset > 0; offset /= 2) {
        sum += __shfl_xor_sync(WHOLE_WARP, sum, offset);
    }
    u32 warps = blockDim.x / 32, lane = threadIdx.x % 32;
    if (warps <= 1) return sum;
    warp_sums += threadIdx.y * warps;
    if (lane == 0) warp_sums[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = lane < warps ? warp_sums[lane] : 0.0f;
    for (u32 offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(WHOLE_WARP, sum, offset);
    return sum;
}

__device__ __forceinline__ float scale_of(float squares, float width, float eps) {
    return rsqrtf(__fdividef(squares, width) + eps);
}

template <int WIDTH>
__device__ __forceinline__ float sum_of_squares(const float *x, float mean) {
    float squares = 0.0f;
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) squares += (x[k] - mean) * (x[k] - mean);
    return squares;
}

template <typename In, typename Out, int WIDTH>
__device__ __forceinline__ void finish(const Segment<In, Out> &segment, u32 column, float mean, float scale, float *x) {
    float weight[WIDTH];
    load<F32, WIDTH>(segment.weight + column, weight);
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) x[k] = (x[k] - mean) * scale * weight[k];
    add_bias<WIDTH>(segment.bias, column, x);
}

template <typename In, typename Out, int WIDTH>
__device__ __forceinline__ void normalise_held(const Segment<In, Out> &segment, float width, float eps,
                                               Shared &shared) {
    const int COUNT = Held<WIDTH>::COUNT, GROUPS = COUNT / WIDTH, BATCH = (WIDTH == 1 ? 4 : 16) / WIDTH;
    // This lane's groups are `step` columns apart. Group g exists if g * step is below `room`.
    const u32 first = threadIdx.x * WIDTH, step = blockDim.x * WIDTH;
    const u32 room = first < segment.width ? segment.width - first : 0;
    float x[COUNT], mean = 0.0f, squares = 0.0f;
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) {
        if (g * step < room) {
            load<In, WIDTH>(segment.x + (first + g * step), x + g * WIDTH);
        } else {
#pragma unroll
            for (int k = 0; k < WIDTH; ++k) x[g * WIDTH + k] = 0.0f;
        }
    }
#if !RMS
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) sum += x[i];
    mean = __fdividef(sum_lanes(sum, shared.sums), width);
#endif
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) {
        if (g * step < room) squares += sum_of_squares<WIDTH>(x + g * WIDTH, mean);
    }
    float scale = scale_of(sum_lanes(squares, shared.squares), width, eps);
    // The weights of several groups are loaded before these are stored: the compiler cannot move a load before a store.
#pragma unroll
    for (int batch = 0; batch < GROUPS; batch += BATCH) {
#pragma unroll
        for (int g = batch; g < batch + BATCH; ++g) {
            if (g * step < room) finish<In, Out, WIDTH>(segment, first + g * step, mean, scale, x + g * WIDTH);
        }
#pragma unroll
        for (int g = batch; g < batch + BATCH; ++g) {
            if (g * step < room) store<Out, WIDTH>(x + g * WIDTH, segment.out + (first + g * step));
        }
    }
}

template <typename In, typename Out, int WIDTH>
__device__ __forceinline__ void normalise_streamed(const Segment<In, Out> &segment, float width, float eps,
                                                   Shared &shared) {
    float x[WIDTH], mean = 0.0f, squares = 0.0f;
    const u32 first = threadIdx.x * WIDTH, step = blockDim.x * WIDTH;
#if !RMS
    float sum = 0.0f;
    for (u32 column = first; column < segment.width; column += step) {
        load<In, WIDTH>(segment.x + column, x);
        float group = 0.0f;
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) group += x[k];
        sum += group;
    }
    mean = __fdividef(sum_lanes(sum, shared.sums), width);
#endif
    for (u32 column = first; column < segment.width; column += step) {
        load<In, WIDTH>(segment.x + column, x);
        squares += sum_of_squares<WIDTH>(x, mean);
    }
    float scale = scale_of(sum_lanes(squares, shared.squares), width, eps);
    for (u32 column = first; column < segment.width; column += step) {
        load<In, WIDTH>(segment.x + column, x);
        finish<In, Out, WIDTH>(segment, column, mean, scale, x);
        store<Out, WIDTH>(x, segment.out + column);
    }
}

template <typename In, typename Out, int WIDTH>
__device__ __forceinline__ void normalise(const Segment<In, Out> &segment, u32 width, float eps, Shared &shared) {
    if (width <= blockDim.x * Held<WIDTH>::COUNT) {
        normalise_held<In, Out, WIDTH>(segment, (float)width, eps, shared);
    } else {
        normalise_streamed<In, Out, WIDTH>(segment, (float)width, eps, shared);
    }
}

// Elements of a group that is read and written as vectors, whatever the types.
#define GROUP 8

// Rows of x and out start `stride` and `out_stride` elements apart. The first `segments` times `width` elements of each
// are normalised, every segment by itself and with the same weight and bias. `out` may be `x`, with the same type and
// stride. The bias may be null, and is not read for RMS norms.
template <typename In, typename Out>
__device__ __forceinline__ void norm(const In *x, u64 stride, Out *out, u64 out_stride, const F32 *weight,
                                     const F32 *bias, u32 rows, u32 width, u32 segments, float eps) {
    __shared__ Shared shared;
    u64 index = (u64)blockIdx.x * blockDim.y + threadIdx.y;
    bool exists = index < (u64)rows * segments;
    // There are fewer than 2^32 segments.
    u32 row = segments == 1 ? (u32)index : (u32)index / segments, part = (u32)index - row * segments;
    u64 first = (u64)part * width;
    Segment<In, Out> segment = {x + row * stride + first, weight, RMS ? nullptr : bias,
                                out + row * out_stride + first, exists ? width : 0};
    bool whole = width % GROUP == 0 && stride % GROUP == 0 && out_stride % GROUP == 0;
    if (whole && is_aligned(x) && is_aligned(out) && is_aligned(weight) && is_aligned(segment.bias)) {
        normalise<In, Out, GROUP>(segment, width, eps, shared);
    } else {
        normalise<In, Out, 1>(segment, width, eps, shared);
    }
}

#define KERNEL(NAME, IN, OUT)                                                                                          \
    extern "C" __global__ void __launch_bounds__(THREADS, 1)                                                           \
        NAME(const IN *x, u64 stride, OUT *out, u64 out_stride, const F32 *weight, const F32 *bias, u32 rows,          \
             u32 width, u32 segments, float eps) {                                                                     \
        norm(x, stride, out, out_stride, weight, bias, rows, width, segments, eps);                                    \
    }

KERNEL(norm_f32_f32, F32, F32)
KERNEL(norm_f32_f16, F32, F16)
KERNEL(norm_f32_bf16, F32, Bf16)
KERNEL(norm_f16_f16, F16, F16)
KERNEL(norm_bf16_bf16, Bf16, Bf16)
