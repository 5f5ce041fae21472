// Appended to device.hpp and the source of the kernels.

template <typename Element, typename Activate, typename Gate>
void run(Activate activate, Gate gate, Arguments &arguments) {
    bool gated = arguments.number<u32>();
    Index block = {arguments.number<u32>(), 1, 1};
    block.y = arguments.number<u32>();
    Index grid = {arguments.number<u32>(), 1, 1};
    grid.y = arguments.number<u32>();
    u32 rows = arguments.number<u32>(), width = arguments.number<u32>();
    bool biased = arguments.number<u32>();
    // Elements before the first of x and of the result of a gate, to test every alignment.
    u32 skipped = arguments.number<u32>();
    Element *x = arguments.pointer<Element>();
    F32 *bias = arguments.pointer<F32>();
    u32 elements = skipped + rows * width;
    std::vector<uint4> memory(elements * sizeof(Element) / 16 + 1);
    Element *out = reinterpret_cast<Element *>(memory.data());
    launch(grid, block, [&] {
        if (gated) gate(x + skipped, biased ? bias : nullptr, out + skipped, rows, width);
        if (!gated) activate(x + skipped, biased ? bias : nullptr, rows, width);
    });
    std::vector<float> wide;
    for (u32 i = skipped; i < elements; ++i) wide.push_back(widen(gated ? out[i] : x[i]));
    answer(wide);
}

int main() {
    Arguments arguments;
    u32 element = arguments.number<u32>();
    if (element == 0) run<F32>(activate_f32, gate_f32, arguments);
    if (element == 1) run<F16>(activate_f16, gate_f16, arguments);
    if (element == 2) run<Bf16>(activate_bf16, gate_bf16, arguments);
}
