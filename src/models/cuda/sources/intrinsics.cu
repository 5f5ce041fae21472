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
