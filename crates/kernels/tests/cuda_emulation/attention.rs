//! Attention, compared with the CPU kernel over the same rounded inputs.

use crate::elements::Element;
use crate::emulator::{Arguments, Emulator};
use crate::noise;
use kernels::attention::{AttentionShape, Visibility, causal};
use kernels::cuda::{self, AttentionTiling, query_blocks};
use std::ops::Range;

/// Around the sizes of tiles and of products.
const LENGTHS: [usize; 9] = [1, 2, 16, 17, 63, 65, 0, 130, 100];

struct Case {
    element: Element,
    shape: AttentionShape,
    visibility: Visibility,
    /// True if copies happen as soon as they are queued, false if as late as they may.
    early: bool,
}

impl Case {
    fn sequences() -> Vec<Range<usize>> {
        let ends = LENGTHS.iter().scan(0, |end, length| {
            *end += length;
            Some(*end)
        });
        ends.zip(LENGTHS).map(|(end, length)| end - length..end).collect()
    }

    fn run(&self, emulator: &Emulator, tiling: &AttentionTiling, qkv: &[f32]) -> Vec<f32> {
        let blocks = query_blocks(&Self::sequences(), tiling.queries);
        let window = match self.visibility {
            Visibility::Past => 0,
            Visibility::Window(keys) => keys,
        };
        let arguments = Arguments::new()
            .number(self.element as usize)
            .number(self.shape.heads)
            .number(self.shape.kv_heads)
            .number(LENGTHS.iter().sum())
            .number(blocks.len())
            .number(window)
            .number(usize::from(self.early))
            .floats(&[self.shape.scale])
            .floats(&[self.shape.soft_cap.unwrap_or(0.0)])
            .bytes(self.element.bytes(qkv))
            .whole(&blocks.into_iter().flatten().map(|row| row as u32).collect::<Vec<_>>());
        emulator.run(arguments)
    }

    fn check(&self, emulator: &Emulator, tiling: &AttentionTiling) -> f64 {
        let tokens: usize = LENGTHS.iter().sum();
        let qkv = noise(tokens * self.shape.qkv_width(), 3);
        let qkv: Vec<f32> = qkv.iter().map(|x| self.element.rounded(*x)).collect();
        let got = self.run(emulator, tiling, &qkv);
        let mut want = vec![0f32; tokens * self.shape.out_width()];
        causal(&mut want, &qkv, &Self::sequences(), self.shape, self.visibility, None);
        let mut worst = 0f64;
        for (i, (&got, &want)) in got.iter().zip(&want).enumerate() {
            let error = f64::from((got - want).abs());
            // Weights and results are rounded; the former add up to 1, and no value is larger than 1. Scores are as
            // large as 30 and have as much error in f32 as 1e-5.
            let most = self.element.unit() * (1.0 + f64::from(want.abs())) + 2e-5;
            let what = format!("{:?} {:?} {:?}, element {i}", self.element, self.shape, self.visibility);
            assert!(error <= most, "{what}: {got}, not {want}");
            worst = worst.max(error / self.element.unit());
        }
        assert_eq!(got.len(), want.len());
        worst
    }
}

fn shape(heads: usize, kv_heads: usize, head_dim: usize, soft_cap: Option<f32>) -> AttentionShape {
    AttentionShape { heads, kv_heads, head_dim, scale: 3.0 / (head_dim as f32).sqrt(), soft_cap }
}

#[test]
#[ignore = "needs a C++ compiler"]
fn every_size_of_heads_equals_the_cpu_kernel() {
    for head_dim in [8, 16, 24, 64, 80, 96, 128, 256] {
        let mut worst = 0f64;
        let tiling = AttentionTiling::new(head_dim).unwrap();
        let emulator = Emulator::new(&cuda::attention(&tiling), "attention");
        for element in [Element::F16, Element::Bf16] {
            let past = Visibility::Past;
            // Windows that end within a tile and within a product, and those that hide almost all.
            let windows = [1, 5, 17, 64, 66, 79].map(Visibility::Window);
            let some = if head_dim == 24 { &windows[..] } else { &windows[4..5] };
            for (i, &visibility) in [past].iter().chain(some).enumerate() {
                let early = i % 2 == 1;
                let shape = shape(2, 1, head_dim, None);
                worst = worst.max(Case { element, shape, visibility, early }.check(&emulator, &tiling));
            }
            let capped = shape(2, 2, head_dim, Some(4.0));
            worst = worst.max(Case { element, shape: capped, visibility: past, early: true }.check(&emulator, &tiling));
        }
        println!("heads of {head_dim}: largest error {worst:.2} units of the type");
    }
}

#[test]
#[ignore = "needs a C++ compiler"]
fn what_is_not_finite_stays_in_its_sequence_and_is_seen() {
    let tiling = AttentionTiling::new(64).unwrap();
    let emulator = Emulator::new(&cuda::attention(&tiling), "attention");
    let shape = shape(2, 1, 64, None);
    let (width, sequences) = (shape.qkv_width(), Case::sequences());
    let tokens: usize = LENGTHS.iter().sum();
    // A query, a key and a value of row 40 of the sequence of 130.
    let row = sequences[7].start + 40;
    for (column, bad) in [(5, f32::NAN), (130, f32::INFINITY), (133, f32::NAN), (200, f32::NEG_INFINITY)] {
        let mut qkv = noise(tokens * width, 3);
        qkv[row * width + column] = bad;
        let case = Case { element: Element::Bf16, shape, visibility: Visibility::Past, early: false };
        let got = case.run(&emulator, &tiling, &qkv);
        let is_finite = |row: usize| got[row * shape.out_width()..][..shape.out_width()].iter().all(|x| x.is_finite());
        let elsewhere = (0..tokens).filter(|row| !sequences[7].contains(row));
        assert!(elsewhere.into_iter().all(is_finite), "{bad} in column {column}");
        assert!(!is_finite(row), "{bad} in column {column}");
        // Keys and values are seen by all later queries.
        if column >= 128 {
            assert!((row..sequences[7].end).all(|row| !is_finite(row)), "{bad} in column {column}");
        }
    }
}
