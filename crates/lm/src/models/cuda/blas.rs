//! The arguments that cuBLAS takes for products of row-major matrices.

use candle_core::{Error, Result, bail};

/// Products `left right` or `left right^T` of row-major matrices, several of the same shape: `left` is `[batch, rows,
/// inner]`, the result `[batch, rows, columns]`, and `right` `[batch, inner, columns]`, or `[batch, columns, inner]` if
/// it is transposed. Weights `[out, in]` are transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductShape {
    pub batch: usize,
    pub rows: usize,
    pub inner: usize,
    pub columns: usize,
    pub is_transposed: bool,
}

/// The arguments of `cublasGemmStridedBatchedEx`, which knows column-major matrices: `c = op(a) b`, where `c` is `[m,
/// n]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlasArguments {
    /// True if `a` is `[k, m]` and to be transposed.
    pub transposes_a: bool,
    pub m: i32,
    pub n: i32,
    pub k: i32,
    /// Elements from one column to the next.
    pub lda: i32,
    pub ldb: i32,
    pub ldc: i32,
    /// Elements from one matrix of the batch to the next.
    pub stride_a: i64,
    pub stride_b: i64,
    pub stride_c: i64,
    pub batch: i32,
}

impl ProductShape {
    /// For matrices in the last two dimensions of tensors that are equal in the others; gives the dimensions of the
    /// result as well.
    pub fn matching(left: &[usize], right: &[usize], is_transposed: bool) -> Result<(Self, Vec<usize>)> {
        let (&[ref batch @ .., rows, inner], &[ref same @ .., first, second]) = (left, right) else {
            bail!("a product of {left:?} and {right:?}")
        };
        let (columns, same_inner) = if is_transposed { (first, second) } else { (second, first) };
        if batch != same || inner != same_inner {
            bail!("a product of {left:?} and {right:?}, {}", if is_transposed { "transposed" } else { "as it is" });
        }
        let shape = Self { batch: batch.iter().product(), rows, inner, columns, is_transposed };
        Ok((shape, [batch, &[rows, columns]].concat()))
    }

    /// Elements of `left`, of `right` and of the result.
    pub fn elements(&self) -> [usize; 3] {
        [self.rows * self.inner, self.inner * self.columns, self.rows * self.columns].map(|each| self.batch * each)
    }

    /// A row-major matrix is the transpose of the column-major one in the same memory, so that cuBLAS computes the
    /// transpose of the result: `a` is `right` and `b` is `left`.
    pub fn arguments(&self) -> Result<BlasArguments> {
        let to_i32 = |n: usize| {
            i32::try_from(n).map_err(|_| Error::Msg(format!("a size of {n} exceeds the range of cuBLAS: {self:?}")))
        };
        let [m, n, k] = [to_i32(self.columns)?, to_i32(self.rows)?, to_i32(self.inner)?];
        Ok(BlasArguments {
            transposes_a: self.is_transposed,
            m,
            n,
            k,
            lda: if self.is_transposed { k } else { m },
            ldb: k,
            ldc: m,
            stride_a: i64::from(k) * i64::from(m),
            stride_b: i64::from(k) * i64::from(n),
            stride_c: i64::from(m) * i64::from(n),
            batch: to_i32(self.batch)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes the product of cuBLAS as its reference defines it:
    /// `c[i + j ldc] = sum over l of op(a)[i, l] b[l + j ldb]`.
    fn cublas(arguments: &BlasArguments, a: &[f64], b: &[f64], c: &mut [f64]) {
        let BlasArguments { m, n, k, lda, ldb, ldc, .. } = *arguments;
        let [m, n, k, lda, ldb, ldc] = [m, n, k, lda, ldb, ldc].map(|size| size as usize);
        let strides = [arguments.stride_a, arguments.stride_b, arguments.stride_c].map(|stride| stride as usize);
        for batch in 0..arguments.batch as usize {
            let [a, b] = [&a[batch * strides[0]..], &b[batch * strides[1]..]];
            let c = &mut c[batch * strides[2]..];
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let of_a = |l: usize| if arguments.transposes_a { a[l + i * lda] } else { a[i + l * lda] };
                c[i + j * ldc] = (0..k).map(|l| of_a(l) * b[l + j * ldb]).sum();
            }
        }
    }

    #[test]
    fn cublas_computes_the_product_by_its_definition() {
        for (batch, rows, inner, columns) in [(1, 1, 1, 1), (1, 3, 5, 7), (2, 7, 3, 2), (3, 1, 4, 6), (2, 6, 1, 5)] {
            for is_transposed in [false, true] {
                let shape = ProductShape { batch, rows, inner, columns, is_transposed };
                let [left, right, result] = shape.elements();
                let numbers = |count: usize, step: usize| -> Vec<f64> {
                    (0..count).map(|i| (i * step % 11) as f64 - 5.0).collect()
                };
                let (x, y) = (numbers(left, 7), numbers(right, 4));
                let mut got = vec![f64::NAN; result];
                cublas(&shape.arguments().unwrap(), &y, &x, &mut got);
                let want = (0..result).map(|place| {
                    let (b, row, column) = (place / (rows * columns), place / columns % rows, place % columns);
                    let of_y = |l: usize| match is_transposed {
                        true => y[(b * columns + column) * inner + l],
                        false => y[(b * inner + l) * columns + column],
                    };
                    (0..inner).map(|l| x[(b * rows + row) * inner + l] * of_y(l)).sum::<f64>()
                });
                assert_eq!(got, want.collect::<Vec<_>>(), "{shape:?}");
            }
        }
    }

    #[test]
    fn dimensions_of_tensors_must_match() {
        let (shape, dims) = ProductShape::matching(&[2, 3, 4, 5], &[2, 3, 6, 5], true).unwrap();
        assert_eq!(shape, ProductShape { batch: 6, rows: 4, inner: 5, columns: 6, is_transposed: true });
        assert_eq!(dims, [2, 3, 4, 6]);
        let (shape, dims) = ProductShape::matching(&[4, 5], &[5, 6], false).unwrap();
        assert_eq!((shape.batch, shape.columns, dims), (1, 6, vec![4, 6]));
        let mismatched: [(&[usize], &[usize], bool); 4] = [
            (&[4, 5], &[5, 6], true),
            (&[4, 5], &[6, 5], false),
            (&[2, 4, 5], &[4, 6, 5], true),
            (&[5], &[5, 6], true),
        ];
        for (left, right, is_transposed) in mismatched {
            assert!(ProductShape::matching(left, right, is_transposed).is_err(), "{left:?} {right:?}");
        }
    }

    #[test]
    fn sizes_beyond_its_arguments_are_refused() {
        let shape = ProductShape { batch: 1, rows: 1 << 31, inner: 1, columns: 1, is_transposed: true };
        assert!(shape.arguments().unwrap_err().to_string().contains("2147483648"));
        assert!(ProductShape { rows: (1 << 31) - 1, ..shape }.arguments().is_ok());
    }
}
