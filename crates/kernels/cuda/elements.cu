// Elements as they are stored in memory. All kernels compute in f32.

struct F32 {
    float value;
};
struct F16 {
    unsigned short bits;
};
struct Bf16 {
    unsigned short bits;
};

__device__ __forceinline__ float widen(F32 x) { return x.value; }
__device__ __forceinline__ float widen(F16 x) { return from_f16(x.bits); }
__device__ __forceinline__ float widen(Bf16 x) { return __uint_as_float((u32)x.bits << 16); }

// Rounds to the nearest, ties to even.
__device__ __forceinline__ void narrow(float x, F32 &to) { to.value = x; }
__device__ __forceinline__ void narrow(float x, F16 &to) { to.bits = to_f16(x); }
__device__ __forceinline__ void narrow(float x, Bf16 &to) { to.bits = to_bf16(x); }

// The elements of one word of a vector, the first in the low bits.
__device__ __forceinline__ void unpack(u32 word, float *x, F32) { x[0] = __uint_as_float(word); }
__device__ __forceinline__ void unpack(u32 word, float *x, F16) {
    x[0] = from_f16((unsigned short)(word & 0xffffu));
    x[1] = from_f16((unsigned short)(word >> 16));
}
__device__ __forceinline__ void unpack(u32 word, float *x, Bf16) {
    x[0] = __uint_as_float(word << 16);
    x[1] = __uint_as_float(word & 0xffff0000u);
}

__device__ __forceinline__ u32 packed(const float *x, F32) { return __float_as_uint(x[0]); }
__device__ __forceinline__ u32 packed(const float *x, F16) { return (u32)to_f16(x[0]) | (u32)to_f16(x[1]) << 16; }
__device__ __forceinline__ u32 packed(const float *x, Bf16) { return (u32)to_bf16(x[0]) | (u32)to_bf16(x[1]) << 16; }

// Elements in a vector of 16 bytes.
template <typename Element>
struct Vector {
    static const int WIDTH = 16 / sizeof(Element);
};

template <typename Element>
__device__ __forceinline__ void unpack_vector(uint4 words, float *x) {
    const int per_word = 4 / sizeof(Element);
    unpack(words.x, x, Element());
    unpack(words.y, x + per_word, Element());
    unpack(words.z, x + 2 * per_word, Element());
    unpack(words.w, x + 3 * per_word, Element());
}

template <typename Element>
__device__ __forceinline__ uint4 packed_vector(const float *x) {
    const int per_word = 4 / sizeof(Element);
    uint4 words;
    words.x = packed(x, Element());
    words.y = packed(x + per_word, Element());
    words.z = packed(x + 2 * per_word, Element());
    words.w = packed(x + 3 * per_word, Element());
    return words;
}
