// Elementwise steps between matrix products: bias and activation, and gates.
//
// Blocks are (lanes, rows), and grids (groups of rows, groups of columns); any grid is correct, since blocks go on to
// the rows and columns that have no block of their own. A lane has vectors of AT_ONCE elements at a time, or four
// single elements, all of which it reads before it writes.

static_assert(AT_ONCE % 8 == 0, "a lane has whole vectors");

// Within two units in the last place for f32; for halves an approximation with a relative error of some 1e-7 (1 + |x|),
// far below the rounding of results.
__device__ __forceinline__ float exponential(float x, F32) { return expf(x); }
template <typename Element>
__device__ __forceinline__ float exponential(float x, Element) {
    return __expf(x);
}

// x / (1 + e^-y), where x and y have the same sign; NaN if both are -inf.
template <typename Element>
__device__ __forceinline__ float logistic(float x, float y) {
    float e = exponential(-fabsf(y), Element());
    return __fdividef(y < 0.0f ? x * e : x, 1.0f + e);
}

// x (1 + erf(x / sqrt 2)) / 2, with erfc(z) = t e^(p(t) - z^2), t = 1 / (1 + z / 2), and the Chebyshev fit p of Press
// et al., Numerical Recipes. For negative x the factor is erfc itself, without cancellation. NaN for -inf.
template <typename Element>
__device__ __forceinline__ float gelu(float x) {
    float z = fabsf(x) * 0.707106781f;
    float t = __fdividef(1.0f, 1.0f + 0.5f * z);
    float p = 0.17087277f;
    p = p * t - 0.82215223f;
    p = p * t + 1.4885159f;
    p = p * t - 1.135204f;
    p = p * t + 0.27886807f;
    p = p * t - 0.18628806f;
    p = p * t + 0.09678418f;
    p = p * t + 0.37409196f;
    p = p * t + 1.0000237f;
    p = p * t - 1.2655122f;
    float erfc = t * exponential(p - z * z, Element());
    return 0.5f * x * (x < 0.0f ? erfc : 2.0f - erfc);
}

// x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3), which is x / (1 + e^(-2 u)).
template <typename Element>
__device__ __forceinline__ float gelu_tanh(float x) {
    return logistic<Element>(x, 1.59576912f * (x + 0.044715f * x * x * x));
}

// NaN stays NaN.
template <typename Element>
__device__ __forceinline__ float activated(float x) {
#if ACTIVATION == 0
    return x;
#elif ACTIVATION == 1
    return gelu<Element>(x);
#elif ACTIVATION == 2
    return gelu_tanh<Element>(x);
#elif ACTIVATION == 3
    return x < 0.0f ? 0.0f : x;
#elif ACTIVATION == 4
    return logistic<Element>(x, x);
#else
#error "unknown activation"
#endif
}

// x = f(x + bias)
template <typename Type>
struct Activate {
    typedef Type Element;
    static const int SOURCES = 1;
    Element *x;
    const F32 *bias;
    u32 width;

    __device__ __forceinline__ bool allows_vectors() const { return is_aligned(x) && is_aligned(bias); }
    __device__ __forceinline__ const Element *source(u64 row, u32) const { return x + row * width; }
    __device__ __forceinline__ Element *out(u64 row) const { return x + row * width; }

    template <int WIDTH>
    __device__ __forceinline__ void apply(u32 column, float (&values)[SOURCES][WIDTH]) const {
        add_bias<WIDTH>(bias, column, values[0]);
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) values[0][k] = activated<Element>(values[0][k]);
    }
};

// out = f(first half of x + bias) * (second half of x + bias), where the bias has halves, too.
template <typename Type>
struct Gate {
    typedef Type Element;
    static const int SOURCES = 2;
    const Element *x;
    const F32 *bias;
    Element *result;
    u32 width;

    __device__ __forceinline__ bool allows_vectors() const {
        return is_aligned(x) && is_aligned(bias) && is_aligned(result);
    }
    __device__ __forceinline__ const Element *source(u64 row, u32 half) const { return x + (2 * row + half) * width; }
    __device__ __forceinline__ Element *out(u64 row) const { return result + row * width; }

    template <int WIDTH>
    __device__ __forceinline__ void apply(u32 column, float (&values)[SOURCES][WIDTH]) const {
        add_bias<WIDTH>(bias, column, values[0]);
        add_bias<WIDTH>(bias, width + column, values[1]);
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) values[0][k] = activated<Element>(values[0][k]) * values[1][k];
    }
};

template <int WIDTH, typename Step>
__device__ __forceinline__ void to_groups(const Step &step, u64 rows) {
    typedef typename Step::Element Element;
    const int GROUPS = WIDTH == 1 ? 4 : AT_ONCE / WIDTH;
    const u32 between = blockDim.x * WIDTH;
    for (u64 row = (u64)blockIdx.x * blockDim.y + threadIdx.y; row < rows; row += (u64)gridDim.x * blockDim.y) {
        u32 first = blockIdx.y * GROUPS * between + threadIdx.x * WIDTH;
        for (; first < step.width; first += gridDim.y * GROUPS * between) {
            // Group g exists if g * between is below `room`.
            u32 room = step.width - first;
            float values[GROUPS][Step::SOURCES][WIDTH];
#pragma unroll
            for (int g = 0; g < GROUPS; ++g) {
                if (g * between >= room) continue;
#pragma unroll
                for (int i = 0; i < Step::SOURCES; ++i) {
                    load<Element, WIDTH>(step.source(row, i) + (first + g * between), values[g][i]);
                }
            }
#pragma unroll
            for (int g = 0; g < GROUPS; ++g) {
                if (g * between < room) step.template apply<WIDTH>(first + g * between, values[g]);
            }
#pragma unroll
            for (int g = 0; g < GROUPS; ++g) {
                if (g * between < room) store<Element, WIDTH>(values[g][0], step.out(row) + (first + g * between));
            }
        }
    }
}

template <typename Step>
__device__ __forceinline__ void to_rows(const Step &step, u64 rows) {
    const int vector = Vector<typename Step::Element>::WIDTH;
    if (step.width % vector == 0 && step.allows_vectors()) {
        to_groups<vector>(step, rows);
    } else {
        to_groups<1>(step, rows);
    }
}

// Biases are [width], for gates [2 inner], or null.
#define KERNELS(SUFFIX, ELEMENT)                                                                                       \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        activate_##SUFFIX(ELEMENT *x, const F32 *bias, u64 rows, u32 width) {                                          \
        Activate<ELEMENT> step = {x, bias, width};                                                                     \
        to_rows(step, rows);                                                                                           \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        gate_##SUFFIX(const ELEMENT *x, const F32 *bias, ELEMENT *out, u64 rows, u32 inner) {                          \
        Gate<ELEMENT> step = {x, bias, out, inner};                                                                    \
        to_rows(step, rows);                                                                                           \
    }

KERNELS(f32, F32)
KERNELS(f16, F16)
KERNELS(bf16, Bf16)
