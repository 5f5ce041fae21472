// Instructions for products of matrices, of compute capability 8.0 and later. Their twins for the emulator are in
// matrix.hpp.
//
// Fragments are those of the PTX ISA. With row r = lane / 4 and column c = 2 (lane % 4), a lane holds, two 16-bit
// elements in a word, the first in the low bits:
//   a, 16 x 16: (r, c), (r + 8, c), (r, c + 8), (r + 8, c + 8) and the element to the right of each;
//   b, 16 x 8:  (c, r), (c + 8, r) and the element below each;
// and in f32 of c, 16 x 8: (r, c), (r, c + 1), (r + 8, c), (r + 8, c + 1).

// Dynamic shared memory of a block; its size is set at launch.
#define DYNAMIC_SHARED(TYPE, NAME) extern __shared__ TYPE NAME[]

// c += a b
__device__ __forceinline__ void multiply_add_f16(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void multiply_add_bf16(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Rounds two numbers to the nearest, ties to even; the first is in the low bits.
__device__ __forceinline__ u32 to_f16_pair(float first, float second) {
    u32 pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}
__device__ __forceinline__ u32 to_bf16_pair(float first, float second) {
    u32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}

// 2^x with a relative error of about 2^-22; 0 for -inf, NaN for NaN.
__device__ __forceinline__ float approximate_exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// The address of shared memory that the functions below expect.
__device__ __forceinline__ u32 shared_address(const void *pointer) {
    u32 address;
    asm("{ .reg .u64 wide; cvta.to.shared.u64 wide, %1; cvt.u32.u64 %0, wide; }" : "=r"(address) : "l"(pointer));
    return address;
}

// Loads four matrices of 8 x 8 elements of 16 bits: lanes 8 m to 8 m + 7 give the addresses of the rows of matrix m,
// each aligned to 16 bytes. to[m] receives the elements (lane / 4, 2 (lane % 4)) of matrix m, or of its transpose, and
// the one to the right.
__device__ __forceinline__ void load_matrices(u32 (&to)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}
__device__ __forceinline__ void load_matrices_transposed(u32 (&to)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

// Begins to copy `bytes` bytes (at most 16) from global to shared memory; the rest of the 16 becomes 0. Both addresses
// are aligned to 16 bytes.
__device__ __forceinline__ void copy_async(u32 to, const void *from, u32 bytes) {
    asm volatile("{ .reg .u64 source; cvta.to.global.u64 source, %1; "
                 "cp.async.cg.shared.global [%0], [source], 16, %2; }"
                 :
                 : "r"(to), "l"(from), "r"(bytes)
                 : "memory");
}
// Ends a group of copies of this thread.
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" : : : "memory"); }
// Waits until all but the last PENDING groups of this thread are complete; other threads see them after a barrier.
template <int PENDING>
__device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" : : "n"(PENDING) : "memory");
}
