// A minimal GPU emulator, for checking kernels without a GPU: the threads of a block run one after another on one CPU
// thread, each until it has to wait for others. Lanes of a warp that do not meet at a shuffle, and threads that do not
// meet at a barrier, terminate the program. Shared memory keeps the contents of the previous block.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <ucontext.h>
#include <vector>

using std::max;
using std::min;
typedef unsigned int u32;
typedef unsigned long long u64;

struct alignas(16) uint4 {
    u32 x, y, z, w;
};
struct Index {
    u32 x, y, z;
};
static Index threadIdx, blockIdx, blockDim, gridDim;

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static

inline float __uint_as_float(u32 bits) {
    float x;
    std::memcpy(&x, &bits, 4);
    return x;
}
inline u32 __float_as_uint(float x) {
    u32 bits;
    std::memcpy(&bits, &x, 4);
    return bits;
}
// As on the GPU: the argument is rounded when it is converted to base 2.
inline float __expf(float x) { return exp2f(x * 1.442695041f); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline uint4 __ldcs(const uint4 *address) {
    if (reinterpret_cast<uintptr_t>(address) % 16) {
        std::fprintf(stderr, "a vector is not aligned\n");
        std::exit(3);
    }
    uint4 words;
    std::memcpy(&words, address, 16);
    return words;
}
inline float larger_or_nan(float a, float b) { return a < b || b != b ? b : a; }
inline float from_f16(unsigned short bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float size = exponent == 31 ? (fraction ? NAN : INFINITY)
                 : exponent     ? std::ldexp(1024.0f + fraction, exponent - 25)
                                : std::ldexp((float)fraction, -24);
    return bits & 0x8000 ? -size : size;
}

// Rounded to the nearest, ties to even.
inline unsigned short to_bf16(float x) {
    u32 bits = __float_as_uint(x);
    if (x != x) return 0x7fff;
    return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline unsigned short to_f16(float x) {
    unsigned short sign = (unsigned short)(__float_as_uint(x) >> 16 & 0x8000);
    if (x != x) return 0x7fff;
    float size = std::fabs(x);
    if (size == 0.0f) return sign;
    if (size >= 65520.0f) return sign | 0x7c00;
    int exponent = 0;
    std::frexp(size, &exponent);
    // The distance of neighbours: 2^-10 of the leading bit, and never below the smallest number.
    int step = std::max(exponent - 11, -24);
    int units = (int)std::nearbyint(std::ldexp(size, -step));
    // `units` is at most 2048, which carries into the exponent.
    return sign | (unsigned short)(step == -24 ? units : ((step + 24) << 10) + units);
}

enum State { READY, AT_SHUFFLE, AT_BARRIER, DONE };
struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    State state;
    Index thread;
    u32 linear, shuffles;
    float given[2];
};
static const size_t STACK = 128 << 10;
static std::vector<Fiber> fibers;
static Fiber *running;
static ucontext_t scheduler;
static std::function<void()> kernel;
// Called before and after each block, if set.
static std::function<void()> before_block, after_block;

inline void wait(State state) {
    running->state = state;
    swapcontext(&running->context, &scheduler);
}
inline void __syncthreads() { wait(AT_BARRIER); }
// Alternate shuffles use separate storage, so that no value is overwritten before it is read.
inline float __shfl_xor_sync(u32, float value, int lanes) {
    Fiber *self = running;
    u32 place = self->shuffles++ % 2;
    self->given[place] = value;
    wait(AT_SHUFFLE);
    return fibers[self->linear ^ lanes].given[place];
}

inline void enter() {
    kernel();
    running->state = DONE;
    swapcontext(&running->context, &scheduler);
}
inline void part(const char *where) {
    std::fprintf(stderr, "threads part at a %s\n", where);
    std::exit(2);
}
// Runs a warp until it has finished or reached a barrier.
inline State run_warp(size_t first, size_t end) {
    for (;;) {
        for (size_t i = first; i < end; ++i) {
            if (fibers[i].state == DONE) continue;
            running = &fibers[i];
            threadIdx = running->thread;
            swapcontext(&scheduler, &running->context);
        }
        State state = fibers[first].state;
        for (size_t i = first; i < end; ++i) {
            if (fibers[i].state != state) part("shuffle");
        }
        if (state != AT_SHUFFLE) return state;
    }
}
inline void run_block() {
    size_t threads = fibers.size();
    if (before_block) before_block();
    for (u32 i = 0; i < threads; ++i) {
        Fiber &fiber = fibers[i];
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.get();
        fiber.context.uc_stack.ss_size = STACK;
        fiber.context.uc_link = nullptr;
        fiber.state = READY;
        fiber.shuffles = 0;
        fiber.linear = i;
        fiber.thread = {i % blockDim.x, i / blockDim.x, 0};
        makecontext(&fiber.context, enter, 0);
    }
    for (;;) {
        State all = run_warp(0, 32);
        bool met = true;
        for (size_t first = 32; first < threads; first += 32) met &= run_warp(first, first + 32) == all;
        if (all == DONE && met) {
            if (after_block) after_block();
            return;
        }
        // On a GPU, a finished thread no longer counts at a barrier; no kernel here relies on that.
        if (!met) part("barrier");
    }
}
inline void launch(Index grid, Index block, std::function<void()> body) {
    gridDim = grid;
    blockDim = block;
    kernel = body;
    fibers.resize(block.x * block.y);
    for (Fiber &fiber : fibers) fiber.stack.reset(new char[STACK]);
    for (u32 y = 0; y < grid.y; ++y) {
        for (u32 x = 0; x < grid.x; ++x) {
            blockIdx = {x, y, 0};
            run_block();
        }
    }
}

// Arguments are read from standard input: first their number, then for each one its length in bytes (u64) and its bytes.
struct Arguments {
    std::vector<std::vector<u64>> held;
    size_t next = 0;

    static void read(void *to, size_t bytes) {
        if (std::fread(to, 1, bytes, stdin) != bytes) std::exit(4);
    }
    Arguments() {
        u64 count, bytes;
        for (read(&count, 8); count > 0; --count) {
            read(&bytes, 8);
            held.emplace_back(bytes / 8 + 4);
            // Aligned to sixteen bytes, like GPU memory.
            read(start(held.back()), bytes);
        }
    }
    static char *start(std::vector<u64> &words) {
        uintptr_t address = reinterpret_cast<uintptr_t>(words.data());
        return reinterpret_cast<char *>((address + 15) / 16 * 16);
    }
    template <typename T>
    T *pointer() {
        return reinterpret_cast<T *>(start(held.at(next++)));
    }
    template <typename T>
    T number() {
        return *pointer<T>();
    }
};
inline void answer(const std::vector<float> &out) { std::fwrite(out.data(), 4, out.size(), stdout); }
