// Appended to device.hpp and the source of the kernel.

template <typename Element, typename Kernel>
void run(Kernel kernel, Arguments &arguments) {
    u32 threads = arguments.number<u32>(), tokens = arguments.number<u32>(), width = arguments.number<u32>();
    u32 heads = arguments.number<u32>(), head_dim = arguments.number<u32>(), half = arguments.number<u32>();
    bool biased = arguments.number<u32>();
    // Elements before the first of qkv, to test every alignment.
    u32 skipped = arguments.number<u32>();
    Element *qkv = arguments.pointer<Element>();
    F32 *bias = arguments.pointer<F32>(), *cos = arguments.pointer<F32>(), *sin = arguments.pointer<F32>();
    u32 *positions = arguments.pointer<u32>();
    launch({tokens, 1, 1}, {threads, 1, 1}, [&] {
        kernel(qkv + skipped, biased ? bias : nullptr, half ? cos : nullptr, half ? sin : nullptr, positions, width,
               heads, head_dim, half);
    });
    std::vector<float> wide;
    for (u32 i = skipped; i < skipped + tokens * width; ++i) wide.push_back(widen(qkv[i]));
    answer(wide);
}

int main() {
    Arguments arguments;
    u32 element = arguments.number<u32>();
    if (element == 0) run<F32>(rotate_f32, arguments);
    if (element == 1) run<F16>(rotate_f16, arguments);
    if (element == 2) run<Bf16>(rotate_bf16, arguments);
}
