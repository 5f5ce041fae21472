// Appended to device.hpp and the source of the kernel.

int main() {
    Arguments arguments;
    u32 tokens = arguments.number<u32>(), sequences = arguments.number<u32>(), blocks = arguments.number<u32>();
    u32 heads = arguments.number<u32>(), head_dim = arguments.number<u32>(), groups = arguments.number<u32>();
    float least = arguments.number<float>(), most = arguments.number<float>();
    // x, gate, time steps, b and c; then the learned parameters.
    float *varying[5], *learned[3];
    u32 strides[5];
    for (int i = 0; i < 5; ++i) {
        strides[i] = arguments.number<u32>();
        varying[i] = arguments.pointer<float>();
    }
    for (float *&parameters : learned) parameters = arguments.pointer<float>();
    u32 *bounds = arguments.pointer<u32>();
    std::vector<float> out(tokens * heads * head_dim, 7.0f);
    launch({sequences * blocks, 1, 1}, {THREADS, 1, 1}, [&] {
        selective_scan(varying[0], strides[0], varying[1], strides[1], varying[2], strides[2], varying[3], strides[3],
                       varying[4], strides[4], learned[0], learned[1], learned[2], least, most, bounds, out.data(), heads,
                       head_dim, groups);
    });
    answer(out);
}
