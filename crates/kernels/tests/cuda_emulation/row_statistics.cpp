// Appended to device.hpp and the source of the kernel.

int main() {
    Arguments arguments;
    u32 rows = arguments.number<u32>(), columns = arguments.number<u32>();
    u32 first = arguments.number<u32>(), lanes = arguments.number<u32>(), with_bias = arguments.number<u32>();
    u32 skipped = arguments.number<u32>();
    float cap = arguments.number<float>();
    // The offset of the product in memory, in elements, to test every alignment.
    float *product = arguments.pointer<float>() + skipped;
    float *given = arguments.pointer<float>(), *bias = with_bias ? given : nullptr;
    u32 *targets = arguments.pointer<u32>();
    std::vector<float> out(rows * 5, 7.0f);
    u32 per_block = THREADS / lanes;
    launch({(rows + per_block - 1) / per_block, 1, 1}, {lanes, per_block, 1}, [&] {
        row_statistics(product, bias, cap, targets, out.data(), rows, columns, first);
    });
    answer(out);
}
