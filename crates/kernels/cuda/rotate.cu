// Adds the bias of the product that yields queries, keys and values, and rotates queries and keys by their positions.
// One block per token. Every element is read and written by one thread, at most once.

// Columns that are not rotated: `count` segments of `length` columns, from `first` on, `stride` columns apart.
struct Columns {
    u32 first, length, stride, count;
};

template <typename Element, int WIDTH>
__device__ __forceinline__ void shift_groups(Element *row, const F32 *bias, const Columns &columns) {
    u32 groups = columns.length / WIDTH;
    for (u32 i = threadIdx.x; i < columns.count * groups; i += blockDim.x) {
        u32 column = columns.first + i / groups * columns.stride + i % groups * WIDTH;
        float x[WIDTH];
        load<Element, WIDTH>(row + column, x);
        add_bias<WIDTH>(bias, column, x);
        store<Element, WIDTH>(x, row + column);
    }
}

// Adds the bias to the columns.
template <typename Element>
__device__ __forceinline__ void shift(Element *row, const F32 *bias, const Columns &columns, bool aligned) {
    const u32 vector = Vector<Element>::WIDTH;
    // Then the first column is a whole number of vectors, too, since the columns end with a head or the row.
    if (aligned && columns.length % vector == 0 && columns.stride % vector == 0) {
        shift_groups<Element, Vector<Element>::WIDTH>(row, bias, columns);
    } else {
        shift_groups<Element, 1>(row, bias, columns);
    }
}

// Adds the bias to the first 2 half elements of each head and rotates them; `cos` and `sin` are those of the position.
template <typename Element, int WIDTH>
__device__ __forceinline__ void rotate_groups(Element *row, const F32 *bias, const F32 *cos, const F32 *sin,
                                              u32 heads, u32 head_dim, u32 half) {
    u32 groups = half / WIDTH;
    for (u32 i = threadIdx.x; i < heads * groups; i += blockDim.x) {
        u32 pair = i % groups * WIDTH, low = i / groups * head_dim + pair, high = low + half;
        float a[WIDTH], b[WIDTH], c[WIDTH], s[WIDTH];
        load<Element, WIDTH>(row + low, a);
        load<Element, WIDTH>(row + high, b);
        load<F32, WIDTH>(cos + pair, c);
        load<F32, WIDTH>(sin + pair, s);
        add_bias<WIDTH>(bias, low, a);
        add_bias<WIDTH>(bias, high, b);
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) {
            float x = a[k], y = b[k];
            a[k] = x * c[k] - y * s[k];
            b[k] = y * c[k] + x * s[k];
        }
        store<Element, WIDTH>(a, row + low);
        store<Element, WIDTH>(b, row + high);
    }
}

// qkv is [tokens, width], and begins with `heads` heads of queries and keys; the bias is [width] or null, and the
// tables are [positions, half]. Without a bias, elements that are not rotated are not touched. If `half` is 0, neither
// positions nor tables are read.
template <typename Element>
__device__ __forceinline__ void rotate(Element *qkv, const F32 *bias, const F32 *cos, const F32 *sin,
                                       const u32 *positions, u32 width, u32 heads, u32 head_dim, u32 half) {
    const u32 vector = Vector<Element>::WIDTH;
    Element *row = qkv + (u64)blockIdx.x * width;
    bool aligned = width % vector == 0 && is_aligned(qkv) && is_aligned(bias);
    if (half > 0) {
        u64 angles = (u64)positions[blockIdx.x] * half;
        bool whole = head_dim % vector == 0 && half % vector == 0 && is_aligned(cos) && is_aligned(sin);
        if (aligned && whole) {
            rotate_groups<Element, Vector<Element>::WIDTH>(row, bias, cos + angles, sin + angles, heads, head_dim,
                                                           half);
        } else {
            rotate_groups<Element, 1>(row, bias, cos + angles, sin + angles, heads, head_dim, half);
        }
    }
    if (!bias) return;
    Columns unrotated = {2 * half, head_dim - 2 * half, head_dim, heads};
    Columns values = {heads * head_dim, width - heads * head_dim, 0, 1};
    shift(row, bias, unrotated, aligned);
    shift(row, bias, values, aligned);
}

#define KERNEL(NAME, ELEMENT)                                                                                          \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        NAME(ELEMENT *qkv, const F32 *bias, const F32 *cos, const F32 *sin, const u32 *positions, u32 width,           \
             u32 heads, u32 head_dim, u32 half) {                                                                      \
        rotate(qkv, bias, cos, sin, positions, width, heads, head_dim, half);                                          \
    }

KERNEL(rotate_f32, F32)
KERNEL(rotate_f16, F16)
KERNEL(rotate_bf16, Bf16)
