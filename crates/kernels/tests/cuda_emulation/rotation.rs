//! Biases and rotations, compared with the CPU kernel.

use crate::elements::Element;
use crate::emulator::{Arguments, Emulator};
use crate::noise;
use kernels::cuda;
use kernels::rotation::Angles;

#[test]
#[ignore = "needs a C++ compiler"]
fn queries_and_keys_are_rotated_as_on_the_cpu() {
    let emulator = Emulator::new(&cuda::rotation(), "rotation");
    // Heads of queries and keys, of values, their size, and how many elements of a head are rotated.
    let shapes =
        [(2, 1, 8, 8), (6, 3, 16, 4), (5, 1, 64, 64), (4, 2, 80, 20), (9, 3, 24, 10), (8, 4, 128, 32), (4, 2, 48, 0)];
    for element in Element::ALL {
        for (heads, values, head_dim, dims) in shapes {
            for (skipped, biased) in [(0, true), (0, false), (1, true)] {
                let width = (heads + values) * head_dim;
                let positions: Vec<u32> = [0, 1, 2, 0, 69, 33, 5].into();
                let qkv: Vec<f32> =
                    noise(positions.len() * width, 3).iter().map(|x| element.rounded(3.0 * x)).collect();
                let bias = noise(width, 4);
                let frequencies: Vec<f32> =
                    (0..dims / 2).map(|i| 10_000f32.powf(-2.0 * i as f32 / dims as f32)).collect();
                let angles = Angles::new(&frequencies, 70);
                let arguments = Arguments::new()
                    .number(element as usize)
                    .number(cuda::rotation_threads(width))
                    .number(positions.len())
                    .number(width)
                    .number(heads)
                    .number(head_dim)
                    .number(dims / 2)
                    .number(usize::from(biased))
                    .number(skipped)
                    .bytes(element.bytes(&[vec![0.0; skipped], qkv.clone()].concat()))
                    .floats(&bias)
                    .floats(angles.cos())
                    .floats(angles.sin())
                    .whole(&positions);
                let got = emulator.run(arguments);
                assert_eq!(got.len(), qkv.len());
                for (row, &position) in positions.iter().enumerate() {
                    let mut want = qkv[row * width..(row + 1) * width].to_vec();
                    if biased {
                        want.iter_mut().zip(&bias).for_each(|(x, b)| *x += b);
                    }
                    let rotated = want[..heads * head_dim].chunks_exact_mut(head_dim);
                    rotated.for_each(|head| angles.rotate(head, position as usize));
                    for (column, (&got, &want)) in got[row * width..].iter().zip(&want).enumerate() {
                        // Two products and a sum of numbers of size 4 in f32, rounded once to the type.
                        let most = element.unit() * f64::from(want.abs()) + 1e-6;
                        let error = f64::from((got - want).abs());
                        assert!(error <= most, "{element:?} {head_dim} {dims}, {row} {column}: {got}, not {want}");
                    }
                }
            }
        }
    }
}
