// The instructions of matrix_intrinsics.cu on the emulator. Included after device.hpp.
#pragma once

#include "device.hpp"
#include <array>

#define DYNAMIC_SHARED(TYPE, NAME) TYPE *NAME = reinterpret_cast<TYPE *>(dynamic_shared.data())

// Dynamic shared memory; addresses are offsets into it. All its elements are NaN when a block starts.
static std::vector<uint4> dynamic_shared;
static const unsigned char NAN_BYTE = 0xff;

inline void fail(const char *what) {
    std::fprintf(stderr, "%s\n", what);
    std::exit(3);
}

inline u32 shared_address(const void *pointer) {
    return (u32)(static_cast<const char *>(pointer) - reinterpret_cast<const char *>(dynamic_shared.data()));
}
inline char *shared_at(u32 address) {
    if (address % 16) fail("an address of shared memory is not aligned");
    if (address + 16ull > dynamic_shared.size() * 16) fail("an address is outside shared memory");
    return reinterpret_cast<char *>(dynamic_shared.data()) + address;
}

// What a lane gives to the others when a warp meets.
enum Operation { MULTIPLY_ADD, LOAD, LOAD_TRANSPOSED, VOTE };
struct Offer {
    Operation operation;
    // Number of the meeting in its block, from 1.
    u32 meeting;
    u32 words[6];
};
// By thread. Alternate meetings use separate storage, like shuffles.
static Offer offers[1024][2];

struct Meeting {
    u32 first_lane, place;
    const u32 *of(u32 lane) const { return offers[first_lane + lane][place].words; }
};
inline Meeting meet(Operation operation, std::array<u32, 6> words) {
    u32 self = running->linear, place = running->shuffles % 2, number = ++running->shuffles;
    Offer &offer = offers[self][place];
    offer.operation = operation;
    offer.meeting = number;
    std::copy(words.begin(), words.end(), offer.words);
    wait(AT_SHUFFLE);
    for (u32 lane = 0; lane < 32; ++lane) {
        const Offer &other = offers[self / 32 * 32 + lane][place];
        if (other.operation != operation || other.meeting != number) part("matrix instruction");
    }
    return {self / 32 * 32, place};
}

inline int __any_sync(u32, int condition) {
    Meeting warp = meet(VOTE, {condition != 0});
    for (u32 lane = 0; lane < 32; ++lane) {
        if (warp.of(lane)[0]) return 1;
    }
    return 0;
}

inline float half_bits_widened(u32 bits, bool is_bf16) {
    static const std::vector<float> f16 = [] {
        std::vector<float> all(1 << 16);
        for (u32 i = 0; i < all.size(); ++i) all[i] = from_f16((unsigned short)i);
        return all;
    }();
    return is_bf16 ? __uint_as_float(bits << 16) : f16[bits];
}

// The products are exact; they are added to c in f64, and the sum is rounded to f32 once. (GPUs add in f32 with
// truncation, in an order that is not specified.)
inline void multiply_add(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1, bool is_bf16) {
    Meeting warp = meet(MULTIPLY_ADD, {a[0], a[1], a[2], a[3], b0, b1});
    u32 lane = running->linear % 32;
    for (u32 i = 0; i < 4; ++i) {
        u32 row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        double sum = c[i];
        for (u32 k = 0; k < 16; ++k) {
            // Lane 4 r + k % 8 / 2 holds the columns k and k ^ 1 of row r of a, and the same rows of column r of b.
            u32 x = warp.of(row % 8 * 4 + k % 8 / 2)[row / 8 + k / 8 * 2] >> k % 2 * 16 & 0xffff;
            u32 y = warp.of(column * 4 + k % 8 / 2)[4 + k / 8] >> k % 2 * 16 & 0xffff;
            sum += (double)half_bits_widened(x, is_bf16) * half_bits_widened(y, is_bf16);
        }
        c[i] = (float)sum;
    }
}
inline void multiply_add_f16(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) { multiply_add(c, a, b0, b1, false); }
inline void multiply_add_bf16(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) { multiply_add(c, a, b0, b1, true); }

inline u32 to_f16_pair(float first, float second) { return (u32)to_f16(first) | (u32)to_f16(second) << 16; }
inline u32 to_bf16_pair(float first, float second) { return (u32)to_bf16(first) | (u32)to_bf16(second) << 16; }
inline float approximate_exp2(float x) { return exp2f(x); }

inline unsigned short element_at(u32 address, u32 index) {
    unsigned short bits;
    std::memcpy(&bits, shared_at(address) + 2 * index, 2);
    return bits;
}
inline void load_matrices(u32 (&to)[4], u32 address, Operation operation) {
    Meeting warp = meet(operation, {address});
    u32 lane = running->linear % 32, row = lane / 4, column = lane % 4 * 2;
    for (u32 m = 0; m < 4; ++m) {
        u32 pair[2];
        for (u32 i = 0; i < 2; ++i) {
            pair[i] = operation == LOAD ? element_at(warp.of(8 * m + row)[0], column + i)
                                        : element_at(warp.of(8 * m + column + i)[0], row);
        }
        to[m] = pair[0] | pair[1] << 16;
    }
}
inline void load_matrices(u32 (&to)[4], u32 address) { load_matrices(to, address, LOAD); }
inline void load_matrices_transposed(u32 (&to)[4], u32 address) { load_matrices(to, address, LOAD_TRANSPOSED); }

// A GPU may perform a copy at any time between its issue and the end of a wait for its group. The two extremes show
// different errors: late copies that nothing waited for, early copies that overwrite what others still read.
static bool copies_are_early = false;
struct Copy {
    u32 to, bytes;
    const char *from;

    void perform() const {
        std::memset(shared_at(to), 0, 16);
        std::memcpy(shared_at(to), from, bytes);
    }
};
// The groups of a thread that have not been performed, the oldest first; the last one is still open.
static std::vector<std::vector<Copy>> copies[1024];

inline void copy_async(u32 to, const void *from, u32 bytes) {
    if (reinterpret_cast<uintptr_t>(from) % 16 || bytes > 16) fail("a copy is not aligned");
    Copy copy = {to, bytes, static_cast<const char *>(from)};
    shared_at(to);
    if (copies_are_early) {
        copy.perform();
    } else {
        copies[running->linear].back().push_back(copy);
    }
}
inline void commit_copies() { copies[running->linear].emplace_back(); }
template <int PENDING>
inline void wait_for_copies() {
    std::vector<std::vector<Copy>> &groups = copies[running->linear];
    while (groups.size() > PENDING + 1) {
        for (const Copy &copy : groups.front()) copy.perform();
        groups.erase(groups.begin());
    }
}

// Prepares the memory and the instructions above for launches.
inline void use_matrices(size_t shared_bytes, bool early_copies) {
    dynamic_shared.resize((shared_bytes + 15) / 16);
    copies_are_early = early_copies;
    before_block = [] {
        std::memset(dynamic_shared.data(), NAN_BYTE, dynamic_shared.size() * 16);
        std::memset(offers, 0, sizeof offers);
        for (std::vector<std::vector<Copy>> &groups : copies) groups.assign(1, {});
    };
    after_block = [] {
        for (const std::vector<std::vector<Copy>> &groups : copies) {
            for (const std::vector<Copy> &group : groups) {
                if (!group.empty()) fail("a block ended before its copies");
            }
        }
    };
}
