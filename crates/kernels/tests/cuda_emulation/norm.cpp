// Appended to device.hpp and the source of the kernel.

template <typename In, typename Out, typename Kernel>
void run(Kernel kernel, Arguments &arguments) {
    u32 lanes = arguments.number<u32>(), per_block = arguments.number<u32>();
    u32 rows = arguments.number<u32>(), width = arguments.number<u32>(), segments = arguments.number<u32>();
    u32 stride = arguments.number<u32>();
    bool in_place = arguments.number<u32>(), biased = arguments.number<u32>();
    // Elements before the first of x and of out, to test every alignment.
    u32 skipped = arguments.number<u32>();
    float eps = arguments.number<float>();
    In *x = arguments.pointer<In>();
    F32 *weight = arguments.pointer<F32>(), *bias = arguments.pointer<F32>();
    u32 elements = skipped + rows * stride;
    std::vector<uint4> memory(elements * sizeof(Out) / 16 + 1);
    Out *out = in_place ? reinterpret_cast<Out *>(x) : reinterpret_cast<Out *>(memory.data());
    if (!in_place) {
        for (u32 i = 0; i < elements; ++i) narrow(7.0f, out[i]);
    }
    u32 blocks = (rows * segments + per_block - 1) / per_block;
    launch({blocks, 1, 1}, {lanes, per_block, 1}, [&] {
        kernel(x + skipped, stride, out + skipped, stride, weight, biased ? bias : nullptr, rows, width, segments, eps);
    });
    std::vector<float> wide;
    for (u32 i = skipped; i < elements; ++i) wide.push_back(widen(out[i]));
    answer(wide);
}

int main() {
    Arguments arguments;
    u32 from = arguments.number<u32>(), to = arguments.number<u32>();
    if (from == 0 && to == 0) run<F32, F32>(norm_f32_f32, arguments);
    if (from == 0 && to == 1) run<F32, F16>(norm_f32_f16, arguments);
    if (from == 0 && to == 2) run<F32, Bf16>(norm_f32_bf16, arguments);
    if (from == 1 && to == 1) run<F16, F16>(norm_f16_f16, arguments);
    if (from == 2 && to == 2) run<Bf16, Bf16>(norm_bf16_bf16, arguments);
}
