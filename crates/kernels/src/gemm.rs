//! Matrix products with the `gemm` crate (the one candle uses), restricted to shapes for which the bits of a row do not
//! depend on how many rows are multiplied with it.

use gemm::Parallelism;

/// A strided view of a matrix: element `(row, column)` is at index `row * row_stride + column * column_stride`.
#[derive(Clone, Copy)]
pub struct MatrixView<'a> {
    pub data: &'a [f32],
    pub row_stride: usize,
    pub column_stride: usize,
}

impl<'a> MatrixView<'a> {
    /// A row-major matrix whose rows are `row_stride` apart.
    pub fn rows(data: &'a [f32], row_stride: usize) -> Self {
        Self { data, row_stride, column_stride: 1 }
    }

    /// The transpose of a row-major matrix whose rows are `row_stride` apart.
    pub fn transposed(data: &'a [f32], row_stride: usize) -> Self {
        Self { data, row_stride: 1, column_stride: row_stride }
    }

    fn holds(&self, rows: usize, columns: usize) -> bool {
        (rows - 1) * self.row_stride + (columns - 1) * self.column_stride < self.data.len()
    }
}

/// The instructions that `gemm` selects on this machine; with others it sums in another order, which gives different
/// bits.
pub fn instructions() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            return "avx512";
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return "avx2";
        }
    }
    std::env::consts::ARCH
}

/// The minimum number of rows to multiply by a matrix of `n` columns that keeps `gemm` on its general path.
///
/// A single row (or column) is a matrix-vector product, up to 256 results use a dot-product kernel, and up to 64 x 64
/// results may split the sum elsewhere; all of these sum in another order. Smaller inputs are padded with zero rows.
pub fn fewest_rows(n: usize) -> usize {
    let past_dot_products = 256 / n + 1;
    if n <= 64 { past_dot_products.max(65) } else { past_dot_products.max(2) }
}

/// `out = x w^T` or, with `accumulate`, `out += x w^T`, for x `[m, k]`, w `[n, k]`, out `[m, n]`, all row-major.
///
/// Row i of the result depends only on row i of x (and of out), bit for bit, for n of at least 2.
pub fn linear(
    out: &mut [f32],
    x: &[f32],
    w: &[f32],
    [m, n, k]: [usize; 3],
    accumulate: bool,
    parallelism: Parallelism,
) {
    let padded = fewest_rows(n);
    if m == 0 || m >= padded {
        return product(
            out,
            n,
            MatrixView::rows(x, k),
            MatrixView::transposed(w, k),
            [m, n, k],
            accumulate,
            parallelism,
        );
    }
    let mut wide_x = vec![0f32; padded * k];
    let mut wide_out = vec![0f32; padded * n];
    wide_x[..m * k].copy_from_slice(x);
    wide_out[..m * n].copy_from_slice(out);
    let (views, shape) = ((MatrixView::rows(&wide_x, k), MatrixView::transposed(w, k)), [padded, n, k]);
    product(&mut wide_out, n, views.0, views.1, shape, accumulate, parallelism);
    out.copy_from_slice(&wide_out[..m * n]);
}

/// `out = a b` or `out += a b` for a `[m, k]`, b `[k, n]`, out `[m, n]` with rows `out_stride` apart.
///
/// # Panics
/// If a view or `out` is too small for the shape: an error of the caller, never of a request.
pub fn product(
    out: &mut [f32],
    out_stride: usize,
    a: MatrixView,
    b: MatrixView,
    [m, n, k]: [usize; 3],
    accumulate: bool,
    parallelism: Parallelism,
) {
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    assert!(a.holds(m, k) && b.holds(k, n) && (m - 1) * out_stride + n <= out.len(), "gemm: shape beyond its data");
    // SAFETY: the assertion above keeps every access inside the three slices, and `out` is borrowed mutably.
    unsafe { product_raw(out.as_mut_ptr(), out_stride, a, b, [m, n, k], accumulate, parallelism) }
}

/// Like [`product`], writing through a pointer so that threads can fill interleaved columns of one matrix.
///
/// # Safety
/// `a` holds `[m, k]`, `b` holds `[k, n]`, and the `m` rows of `n` elements at `out`, `out_stride` apart, are valid for
/// writes and accessed by no other thread.
pub unsafe fn product_raw(
    out: *mut f32,
    out_stride: usize,
    a: MatrixView,
    b: MatrixView,
    [m, n, k]: [usize; 3],
    accumulate: bool,
    parallelism: Parallelism,
) {
    let stride = |s: usize| s as isize;
    // SAFETY: the caller guarantees every element that these shapes and strides reach.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out,
            1,
            stride(out_stride),
            accumulate,
            a.data.as_ptr(),
            stride(a.column_stride),
            stride(a.row_stride),
            b.data.as_ptr(),
            stride(b.column_stride),
            stride(b.row_stride),
            1.0,
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(len: usize, mut seed: u64) -> Vec<f32> {
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 40) as f32 / 8_388_608.0 - 1.0
        };
        (0..len).map(|_| next()).collect()
    }

    /// The guarantee that batch invariance relies on, over the widths of tiny and real models.
    #[test]
    fn a_row_has_the_same_bits_among_any_number_of_rows() {
        const ROWS: usize = 210;
        for (n, k) in [(3, 48), (48, 48), (64, 64), (65, 192), (100, 33), (512, 512), (130, 2048)] {
            let (x, w) = (noise(ROWS * k, 1), noise(n * k, 2));
            for accumulate in [false, true] {
                let start = if accumulate { noise(ROWS * n, 3) } else { vec![0.0; ROWS * n] };
                let mut all = start.clone();
                linear(&mut all, &x, &w, [ROWS, n, k], accumulate, Parallelism::Rayon(0));
                for (from, rows) in [(0, 1), (3, 1), (17, 2), (20, 3), (9, 5), (40, 31), (60, 64), (61, 65), (100, 110)]
                {
                    let mut some = start[from * n..(from + rows) * n].to_vec();
                    let x = &x[from * k..(from + rows) * k];
                    linear(&mut some, x, &w, [rows, n, k], accumulate, Parallelism::None);
                    let same = some.iter().zip(&all[from * n..]).all(|(a, b)| a.to_bits() == b.to_bits());
                    assert!(same, "n {n}, k {k}, rows {from}+{rows}, accumulate {accumulate}");
                }
            }
        }
    }

    #[test]
    fn a_product_equals_the_definition() {
        let (m, n, k) = (7, 5, 11);
        let (x, w) = (noise(m * k, 4), noise(n * k, 5));
        let mut out = vec![1f32; m * n];
        linear(&mut out, &x, &w, [m, n, k], true, Parallelism::None);
        for i in 0..m {
            for j in 0..n {
                let want: f64 = (0..k).map(|l| f64::from(x[i * k + l]) * f64::from(w[j * k + l])).sum::<f64>() + 1.0;
                assert!((f64::from(out[i * n + j]) - want).abs() < 1e-5);
            }
        }
    }
}
