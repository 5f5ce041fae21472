// Causal self-attention over a packed batch of sequences of different lengths, with f16 or bf16 elements. Scores are
// never stored: the softmax is taken tile by tile, in f32 (Milakov and Gimelshein 2018; Dao 2023).
//
// A block processes QUERIES queries of one sequence and head; a warp, 16 of them. Its queries, weights and sums stay in
// registers; tiles of KEYS keys and values go through shared memory, where the next tile is copied while this one is
// used. Only tiles that a query of the block attends to are read, and only those that its own queries attend to are
// computed by a warp.
//
// Not-a-number and infinite inputs: a query attends to NaN if its score with any visible key is not finite, so that a
// query or key that is not finite never gives a finite result; weights of 0 cannot hide it. A value that is not finite
// makes its column of every result that it is visible to NaN or infinite. It may also make that column NaN in results
// of the same sequence whose queries do not attend to it, if its tile is computed for the same warp, since 0 * inf is
// NaN. Keys of later rows, and all other sequences, never have an effect.
//
// HEAD_DIM is a multiple of 8 up to 256. BLOCKS blocks share a multiprocessor. The scale is positive. Sequences are
// shorter than 2^31.

#define THREADS (QUERIES * 2)
// Vectors of 16 bytes in a row of a head.
#define VECTORS (HEAD_DIM / 8)
// Products have 16 columns of queries and keys each; there are zeros beyond the last column.
#define STEPS ((HEAD_DIM + 15) / 16)
// Vectors from one row of a tile to the next: an odd number, so that equal columns of eight successive rows are in
// different banks.
#define STRIDE (2 * STEPS + 1)
#define TILE_BYTES (KEYS * STRIDE * 16)
// Two tiles of keys, each followed by its tile of values.
#define SHARED_BYTES (4 * TILE_BYTES)
static_assert(HEAD_DIM % 8 == 0 && HEAD_DIM <= 256, "rows are whole vectors");
static_assert(QUERIES % 16 == 0 && KEYS % 16 == 0, "products are 16 rows by 16 keys");
static_assert(QUERIES <= 4 * KEYS, "results pass through the shared memory of the tiles");

#define WHOLE_WARP 0xffffffffu
#define LOG2_E 1.442695041f
// More keys than any sequence has. The difference of a position and a later one exceeds it, as an unsigned number.
#define UNLIMITED 0x80000000u

__device__ __forceinline__ void multiply_add(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1, F16) {
    multiply_add_f16(c, a, b0, b1);
}
__device__ __forceinline__ void multiply_add(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1, Bf16) {
    multiply_add_bf16(c, a, b0, b1);
}
__device__ __forceinline__ u32 narrow_pair(float first, float second, F16) { return to_f16_pair(first, second); }
__device__ __forceinline__ u32 narrow_pair(float first, float second, Bf16) { return to_bf16_pair(first, second); }

__device__ __forceinline__ float minus_infinity() { return __uint_as_float(0xff800000u); }

// The sum, or the maximum, of the four lanes that share a row of a product.
__device__ __forceinline__ float row_sum(float x) {
    x += __shfl_xor_sync(WHOLE_WARP, x, 1);
    return x + __shfl_xor_sync(WHOLE_WARP, x, 2);
}
__device__ __forceinline__ float row_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(WHOLE_WARP, x, 1));
    return fmaxf(x, __shfl_xor_sync(WHOLE_WARP, x, 2));
}

// Positions are those in the sequence.
struct Visibility {
    // Number of keys that a query attends to, its own being the last.
    u32 window;

    __device__ __forceinline__ u32 first_key(u32 position) const {
        return position + 1 > window ? position + 1 - window : 0;
    }
    // Of a key `distance` before the query; later keys have a negative distance, which wraps.
    __device__ __forceinline__ bool sees(u32 distance) const { return distance < window; }
};

// From products of queries and keys to logarithms of weights.
struct Scores {
    // Factor from (capped) scores to logarithms to base 2.
    float factor;
    // Products s become cap tanh(s scale / cap) = cap - 2 cap / (1 + 2^(rate s)), unless cap is 0.
    float cap, rate;

    // NaN for infinite s.
    __device__ __forceinline__ float capped(float s) const {
        return s * 0.0f + cap - __fdividef(2.0f * cap, 1.0f + approximate_exp2(s * rate));
    }
};

// What a warp has of its 16 queries. Index 0 is for row lane / 4 of them, index 1 for the row 8 below it.
struct Softmax {
    // Logarithm to base 2 of the largest weight so far.
    float highest[2];
    // This lane's share of the sum of weights, in units of the largest.
    float weight[2];
    // Weighted sum of the values, in the same units.
    float mixed[VECTORS][4];
};

// Begins to copy the keys and values of one head to the tiles at an address. `count` rows follow the first; rows beyond
// them become zeros, but are not read. The distances of values from their keys and of rows are in bytes.
__device__ __forceinline__ void copy_tiles(u32 address, const char *keys, u32 to_values, u32 to_row, u32 count) {
#pragma unroll
    for (u32 n = 0; n < (KEYS * VECTORS + THREADS - 1) / THREADS; ++n) {
        u32 i = threadIdx.x + n * THREADS, row = i / VECTORS, column = i % VECTORS;
        if (KEYS * VECTORS % THREADS == 0 || i < KEYS * VECTORS) {
            bool exists = row < count;
            const char *from = keys + column * 16 + (u64)(exists ? row : 0) * to_row;
            u32 to = address + (row * STRIDE + column) * 16, bytes = exists ? 16 : 0;
            copy_async(to, from, bytes);
            copy_async(to + TILE_BYTES, from + to_values, bytes);
        }
    }
    commit_copies();
}

// The products of the warp's queries with the keys of a tile.
template <typename Element>
__device__ __forceinline__ void multiply_keys(float (&scores)[KEYS / 8][4], const u32 (&queries)[STEPS][4], u32 tile) {
    // Two neighbouring vectors of eight keys, and of the next eight.
    u32 lane = threadIdx.x % 32, address = tile + ((lane % 8 + lane / 16 * 8) * STRIDE + lane / 8 % 2) * 16;
#pragma unroll
    for (int n = 0; n < KEYS / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) scores[n][i] = 0.0f;
    }
#pragma unroll
    for (int k = 0; k < STEPS; ++k) {
#pragma unroll
        for (int n = 0; n < KEYS / 16; ++n) {
            u32 keys[4];
            load_matrices(keys, address + (n * 16 * STRIDE + k * 2) * 16);
            multiply_add(scores[2 * n], queries[k], keys[0], keys[1], Element());
            multiply_add(scores[2 * n + 1], queries[k], keys[2], keys[3], Element());
        }
    }
}

// Adds the values of a tile, multiplied by the weights.
template <typename Element>
__device__ __forceinline__ void multiply_values(Softmax &rows, const float (&weights)[KEYS / 8][4], u32 tile) {
    // A vector of sixteen values, and the next vector of the same ones.
    u32 lane = threadIdx.x % 32, address = tile + (lane % 16 * STRIDE + lane / 16) * 16;
#pragma unroll
    for (int k = 0; k < KEYS / 16; ++k) {
        // The sums of one product are the left operand of the next: both have the same place in the warp.
        const float(&left)[4] = weights[2 * k], (&right)[4] = weights[2 * k + 1];
        u32 narrow[4] = {narrow_pair(left[0], left[1], Element()), narrow_pair(left[2], left[3], Element()),
                         narrow_pair(right[0], right[1], Element()), narrow_pair(right[2], right[3], Element())};
#pragma unroll
        for (int n = 0; n < VECTORS; n += 2) {
            u32 values[4];
            load_matrices_transposed(values, address + (k * 16 * STRIDE + n) * 16);
            multiply_add(rows.mixed[n], narrow, values[0], values[1], Element());
            if (n + 1 < VECTORS) multiply_add(rows.mixed[n + 1], narrow, values[2], values[3], Element());
        }
    }
}

// Turns products into weights, in units of the largest weight so far. With `masked`, some keys may be invisible;
// `distance` is that of this lane's first query from its first key.
__device__ __forceinline__ void weigh(Softmax &rows, float (&scores)[KEYS / 8][4], const Scores &form, bool masked,
                                      const Visibility &visibility, u32 distance) {
    if (form.cap > 0.0f) {
#pragma unroll
        for (int n = 0; n < KEYS / 8; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) scores[n][i] = form.capped(scores[n][i]);
        }
    }
    // Visible scores that are not finite make the sum of weights NaN.
    if (masked) {
#pragma unroll
        for (int n = 0; n < KEYS / 8; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                bool visible = visibility.sees(distance + i / 2 * 8 - (n * 8 + i % 2));
                rows.weight[i / 2] += visible ? scores[n][i] * 0.0f : 0.0f;
                scores[n][i] = visible ? scores[n][i] : minus_infinity();
            }
        }
    } else {
#pragma unroll
        for (int n = 0; n < KEYS / 8; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) rows.weight[i / 2] += scores[n][i] * 0.0f;
        }
    }
    float highest[2] = {minus_infinity(), minus_infinity()};
#pragma unroll
    for (int n = 0; n < KEYS / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) highest[i / 2] = fmaxf(highest[i / 2], scores[n][i]);
    }
    // Rows that have seen no key yet have a highest of -inf; 0 takes its place where it is subtracted.
    float origin[2], shrink[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        highest[r] = fmaxf(rows.highest[r], row_max(highest[r]) * form.factor);
        origin[r] = highest[r] == minus_infinity() ? 0.0f : highest[r];
        shrink[r] = approximate_exp2(rows.highest[r] - origin[r]);
    }
    // In most tiles, no row has a new maximum.
    if (__any_sync(WHOLE_WARP, highest[0] != rows.highest[0] || highest[1] != rows.highest[1])) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            rows.highest[r] = highest[r];
            rows.weight[r] *= shrink[r];
        }
#pragma unroll
        for (int n = 0; n < VECTORS; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) rows.mixed[n][i] *= shrink[i / 2];
        }
    }
#pragma unroll
    for (int n = 0; n < KEYS / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            scores[n][i] = approximate_exp2(scores[n][i] * form.factor - origin[i / 2]);
            rows.weight[i / 2] += scores[n][i];
        }
    }
}

// The warp's queries from position `first` on; those beyond the end of the sequence are zeros.
template <typename Element>
__device__ __forceinline__ void load_queries(u32 (&queries)[STEPS][4], const Element *rows, u32 width, u32 first,
                                             u32 length) {
    u32 lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        u32 position = first + lane / 4 + r * 8;
        bool exists = position < length;
        const u32 *pairs = reinterpret_cast<const u32 *>(rows + (u64)(exists ? position : 0) * width) + lane % 4;
#pragma unroll
        for (int k = 0; k < STEPS; ++k) {
            queries[k][r] = exists ? pairs[k * 8] : 0;
            queries[k][r + 2] = exists && 2 * k + 1 < VECTORS ? pairs[k * 8 + 4] : 0;
        }
    }
}

// Writes the rows of the block from its first row on, `count` of which exist.
template <typename Element>
__device__ __forceinline__ void store(Element *out, u32 width, u32 count, Softmax &rows, uint4 *shared) {
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    // The last tile may still be in use.
    __syncthreads();
    u32 *pairs = reinterpret_cast<u32 *>(shared);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        // Without any weight, 0 * inf is NaN.
        float inverse = 1.0f / row_sum(rows.weight[r]);
        u32 row = warp * 16 + lane / 4 + r * 8;
#pragma unroll
        for (int n = 0; n < VECTORS; ++n) {
            float first = rows.mixed[n][2 * r] * inverse, second = rows.mixed[n][2 * r + 1] * inverse;
            pairs[(row * STRIDE + n) * 4 + lane % 4] = narrow_pair(first, second, Element());
        }
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < QUERIES * VECTORS; i += THREADS) {
        u32 row = i / VECTORS, column = i % VECTORS;
        if (row < count) {
            *reinterpret_cast<uint4 *>(out + ((u64)row * width + column * 8)) = shared[row * STRIDE + column];
        }
    }
}

template <typename Element>
__device__ __forceinline__ void attend(const Element *qkv, const u32 *blocks, Element *out, u32 heads, u32 kv_heads,
                                       float scale, float cap, u32 window) {
    DYNAMIC_SHARED(uint4, shared);
    u32 tiles = shared_address(shared), head = blockIdx.y;
    u32 start = blocks[blockIdx.x * 3], first_row = blocks[blockIdx.x * 3 + 1], end = blocks[blockIdx.x * 3 + 2];
    u32 length = end - start, first = first_row - start, last = min(first + QUERIES, length) - 1;
    u32 width = (heads + 2 * kv_heads) * HEAD_DIM;
    const Element *rows = qkv + (u64)start * width;
    u32 to_row = width * (u32)sizeof(Element), to_values = kv_heads * HEAD_DIM * (u32)sizeof(Element);
    const char *keys = reinterpret_cast<const char *>(rows + (heads + head / (heads / kv_heads)) * HEAD_DIM);

    Visibility visibility = {window == 0 ? UNLIMITED : min(window, UNLIMITED)};
    Scores form = {(cap > 0.0f ? 1.0f : scale) * LOG2_E, cap, 2.0f * LOG2_E * scale / cap};

    // Positions of the warp's queries; there are none in the last warps of a short block.
    u32 lane = threadIdx.x % 32, warp_first = first + threadIdx.x / 32 * 16, warp_last = warp_first + 15;
    u32 queries[STEPS][4];
    load_queries(queries, rows + head * HEAD_DIM, width, warp_first, length);

    u32 key = visibility.first_key(first) / KEYS * KEYS;
    copy_tiles(tiles, keys + (u64)key * to_row, to_values, to_row, length - key);
#if HEAD_DIM % 16 != 0
    // The copies leave out the last column of the keys.
    for (u32 i = threadIdx.x; i < 2 * KEYS; i += THREADS) {
        uint4 zeros = {0, 0, 0, 0};
        shared[i / KEYS * (2 * KEYS * STRIDE) + i % KEYS * STRIDE + VECTORS] = zeros;
    }
#endif
    Softmax softmax = {{minus_infinity(), minus_infinity()}};
    for (u32 odd = 0; key <= last; key += KEYS, odd ^= 1) {
        wait_for_copies<0>();
        // All have their copies, and are done with the previous tile.
        __syncthreads();
        u32 next = key + KEYS, tile = tiles + odd * 2 * TILE_BYTES;
        if (next <= last) {
            copy_tiles(tiles + (odd ^ 1) * 2 * TILE_BYTES, keys + (u64)next * to_row, to_values, to_row, length - next);
        }
        if (warp_first < length && key <= warp_last && next > visibility.first_key(warp_first)) {
            float scores[KEYS / 8][4];
            multiply_keys<Element>(scores, queries, tile);
            bool masked = next > warp_first + 1 || key < visibility.first_key(warp_last);
            weigh(softmax, scores, form, masked, visibility, warp_first + lane / 4 - (key + lane % 4 * 2));
            multiply_values<Element>(softmax, scores, tile + TILE_BYTES);
        }
    }
    u32 out_width = heads * HEAD_DIM;
    store(out + ((u64)first_row * out_width + head * HEAD_DIM), out_width, length - first, softmax, shared);
}

// `qkv` is [tokens, (heads + 2 kv_heads) * HEAD_DIM]: queries, keys, values, all ready to be multiplied; `out` is
// [tokens, heads * HEAD_DIM]. Both are aligned to 16 bytes. For each of gridDim.x blocks of queries, `blocks` has the
// first row of its sequence, its own first row, and the row after the last of its sequence; gridDim.y is `heads`. A
// window of 0 is none.
#define KERNEL(NAME, ELEMENT)                                                                                          \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                                      \
        NAME(const ELEMENT *qkv, const u32 *blocks, ELEMENT *out, u32 heads, u32 kv_heads, float scale, float cap,     \
             u32 window) {                                                                                             \
        attend(qkv, blocks, out, heads, kv_heads, scale, cap, window);                                                 \
    }

KERNEL(attention_f16, F16)
KERNEL(attention_bf16, Bf16)
