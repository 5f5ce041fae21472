// Groups of neighbouring elements, which a thread reads or writes together: single elements, or vectors of 16 bytes.

// Whether vectors can start at the address; true of a null pointer.
__device__ __forceinline__ bool is_aligned(const void *address) { return reinterpret_cast<u64>(address) % 16 == 0; }

template <typename Element, int WIDTH>
__device__ __forceinline__ void load(const Element *from, float *x) {
    const int each = Vector<Element>::WIDTH;
    static_assert(WIDTH == 1 || WIDTH % each == 0, "a group is an element or whole vectors");
    if constexpr (WIDTH == 1) {
        x[0] = widen(*from);
    } else {
#pragma unroll
        for (int k = 0; k < WIDTH; k += each) {
            unpack_vector<Element>(*reinterpret_cast<const uint4 *>(from + k), x + k);
        }
    }
}

template <typename Element, int WIDTH>
__device__ __forceinline__ void store(const float *x, Element *to) {
    const int each = Vector<Element>::WIDTH;
    static_assert(WIDTH == 1 || WIDTH % each == 0, "a group is an element or whole vectors");
    if constexpr (WIDTH == 1) {
        narrow(x[0], *to);
    } else {
#pragma unroll
        for (int k = 0; k < WIDTH; k += each) {
            *reinterpret_cast<uint4 *>(to + k) = packed_vector<Element>(x + k);
        }
    }
}

// Adds a group of a bias, which may be null.
template <int WIDTH>
__device__ __forceinline__ void add_bias(const F32 *bias, u32 column, float *x) {
    if (!bias) return;
    float shift[WIDTH];
    load<F32, WIDTH>(bias + column, shift);
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) x[k] += shift[k];
}
