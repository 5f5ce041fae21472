// Appended to device.hpp, matrix.hpp and the source of the kernel.

#include <sys/mman.h>
#include <unistd.h>

// A copy of an argument that ends where memory ends, so that reading beyond it ends the program.
static const void *at_end_of_memory(const void *data, size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page;
    void *memory = mmap(nullptr, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::exit(4);
    char *end = static_cast<char *>(memory) + pages * page;
    mprotect(end, page, PROT_NONE);
    return std::memcpy(end - bytes, data, bytes);
}

template <typename Element, typename Kernel>
static void run(Arguments &arguments, Kernel kernel) {
    u32 heads = arguments.number<u32>(), kv_heads = arguments.number<u32>(), tokens = arguments.number<u32>();
    u32 count = arguments.number<u32>(), window = arguments.number<u32>(), early = arguments.number<u32>();
    float scale = arguments.number<float>(), cap = arguments.number<float>();
    size_t bytes = (size_t)tokens * (heads + 2 * kv_heads) * HEAD_DIM * 2;
    const void *qkv = at_end_of_memory(arguments.pointer<char>(), bytes);
    u32 *blocks = arguments.pointer<u32>();
    size_t size = (size_t)tokens * heads * HEAD_DIM;
    std::vector<uint4> memory((size + 7) / 8);
    Element *out = reinterpret_cast<Element *>(memory.data());
    for (size_t i = 0; i < size; ++i) narrow(7.0f, out[i]);
    use_matrices(SHARED_BYTES, early);
    launch({count, heads, 1}, {THREADS, 1, 1},
           [&] { kernel((const Element *)qkv, blocks, out, heads, kv_heads, scale, cap, window); });
    std::vector<float> widened(size);
    for (size_t i = 0; i < size; ++i) widened[i] = widen(out[i]);
    answer(widened);
}

int main() {
    Arguments arguments;
    if (arguments.number<u32>() == 1) {
        run<F16>(arguments, attention_f16);
    } else {
        run<Bf16>(arguments, attention_bf16);
    }
}
