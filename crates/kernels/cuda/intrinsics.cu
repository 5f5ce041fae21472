// Functions that need an instruction of the GPU. No header is included, so that NVRTC needs no include path.

typedef unsigned int u32;
typedef unsigned long long u64;

// The larger of both; NaN is propagated.
__device__ __forceinline__ float larger_or_nan(float a, float b) {
#if __CUDA_ARCH__ >= 800
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
    return larger;
#else
    return a < b ? b : a;
#endif
}

// Converts f16, given as bits, to f32.
__device__ __forceinline__ float from_f16(unsigned short bits) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(bits));
    return wide;
}

// Converts f32 to f16 and to bf16, as bits: to the nearest, ties to even; too large a number becomes infinity.
__device__ __forceinline__ unsigned short to_f16(float x) {
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}
__device__ __forceinline__ unsigned short to_bf16(float x) {
#if __CUDA_ARCH__ >= 800
    unsigned short bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
#else
    u32 bits = __float_as_uint(x);
    if (x != x) return 0x7fff;
    return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
#endif
}
