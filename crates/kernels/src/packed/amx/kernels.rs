//! The products themselves: one block of assembly for each way to split, through all steps of a cut.

use super::machine::StripProduct;
use crate::packed::terms::Terms;
use crate::packed::tile_panels::TILE_ROWS;
use std::arch::asm;

/// Defines the product of a strip and a panel: sums are loaded or begin with zero, the products of every step are added, and
/// sums are stored. No tile register is alive outside of the block. The const parameter is the number of tiles of rows.
///
/// The operations of a step name the operand that changes, `x` or `w`, and the term that it changes to, in the order of
/// [`Terms::products`]; `first` loads activations that no product is taken of yet. Weights stay in the L1 cache while strips
/// pass: `tileloaddt1` keeps these from evicting them.
macro_rules! kernel {
    ($name:ident, $terms_of_x:literal, $terms_of_w:literal, $($operation:ident $term:literal)*) => {
        struct $name;

        impl $name {
            /// The operations of a step.
            #[cfg(test)]
            const OPERATIONS: &[(&str, usize)] = &[$((stringify!($operation), $term)),*];

            /// # Safety
            /// As for [`multiply`].
            unsafe fn run<const TILES: usize>(product: &StripProduct) {
                macro_rules! run {
                    ($zero:literal, $load:literal, $store:literal, $bytes:literal, $body:expr) => {
                        asm!(
                            "test {first:l}, {first:l}", "jz 3f", $zero, "jmp 2f", "3:", $load,
                            "2:", $body,
                            "mov {left}, {lines}", "test {left}, {left}", "jz 5f",
                            "4:", "prefetcht1 [{ahead}]", "add {ahead}, 64", "dec {left}", "jnz 4b", "5:",
                            "add {x}, {x_step}", "add {w}, {w_step}", "dec {steps}", "jnz 2b",
                            $store,
                            x = inout(reg) product.x => _, w = inout(reg) product.w => _,
                            ahead = inout(reg) product.ahead => _, lines = in(reg) product.lines_ahead, left = out(reg) _,
                            steps = inout(reg) product.steps => _, sums = in(reg) product.sums,
                            first = in(reg) u64::from(product.first), row = in(reg) 64usize, pitch = in(reg) 128usize,
                            x_step = const $bytes * $terms_of_x, w_step = const 2048 * $terms_of_w,
                            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                            options(nostack),
                        )
                    };
                }
                // SAFETY: guaranteed by the caller; a prefetch may point anywhere.
                unsafe {
                    if TILES == 2 {
                        run!(
                            "tilezero tmm0\n tilezero tmm1\n tilezero tmm2\n tilezero tmm3",
                            "tileloadd tmm0, [{sums} + {pitch}]\n tileloadd tmm1, [{sums} + {pitch} + 64]\n \
                             tileloadd tmm2, [{sums} + {pitch} + 2048]\n tileloadd tmm3, [{sums} + {pitch} + 2112]",
                            "tilestored [{sums} + {pitch}], tmm0\n tilestored [{sums} + {pitch} + 64], tmm1\n \
                             tilestored [{sums} + {pitch} + 2048], tmm2\n tilestored [{sums} + {pitch} + 2112], tmm3",
                            2048, concat!($(kernel!(@two $operation $term)),*)
                        )
                    } else {
                        run!(
                            "tilezero tmm0\n tilezero tmm1",
                            "tileloadd tmm0, [{sums} + {pitch}]\n tileloadd tmm1, [{sums} + {pitch} + 64]",
                            "tilestored [{sums} + {pitch}], tmm0\n tilestored [{sums} + {pitch} + 64], tmm1",
                            1024, concat!($(kernel!(@one $operation $term)),*)
                        )
                    }
                }
            }
        }
    };
    (@two w $term:literal) => {
        concat!(
            "tileloadd tmm6, [{w} + {row} + 2048 * ", $term, "]\n",
            "tdpbf16ps tmm0, tmm4, tmm6\n tdpbf16ps tmm2, tmm5, tmm6\n",
            "tileloadd tmm7, [{w} + {row} + 1024 + 2048 * ", $term, "]\n",
            "tdpbf16ps tmm1, tmm4, tmm7\n tdpbf16ps tmm3, tmm5, tmm7\n",
        )
    };
    (@two x $term:literal) => {
        concat!(
            "tileloaddt1 tmm4, [{x} + {row} + 2048 * ", $term, "]\n",
            "tdpbf16ps tmm0, tmm4, tmm6\n tdpbf16ps tmm1, tmm4, tmm7\n",
            "tileloaddt1 tmm5, [{x} + {row} + 1024 + 2048 * ", $term, "]\n",
            "tdpbf16ps tmm2, tmm5, tmm6\n tdpbf16ps tmm3, tmm5, tmm7\n",
        )
    };
    (@two first $term:literal) => {
        concat!(
            "tileloaddt1 tmm4, [{x} + {row} + 2048 * ", $term, "]\n",
            "tileloaddt1 tmm5, [{x} + {row} + 1024 + 2048 * ", $term, "]\n",
        )
    };
    (@one w $term:literal) => {
        concat!(
            "tileloadd tmm6, [{w} + {row} + 2048 * ", $term, "]\n tdpbf16ps tmm0, tmm4, tmm6\n",
            "tileloadd tmm7, [{w} + {row} + 1024 + 2048 * ", $term, "]\n tdpbf16ps tmm1, tmm4, tmm7\n",
        )
    };
    (@one x $term:literal) => {
        concat!(
            "tileloaddt1 tmm4, [{x} + {row} + 1024 * ", $term, "]\n",
            "tdpbf16ps tmm0, tmm4, tmm6\n tdpbf16ps tmm1, tmm4, tmm7\n",
        )
    };
    (@one first $term:literal) => { concat!("tileloaddt1 tmm4, [{x} + {row} + 1024 * ", $term, "]\n") };
}

kernel!(X1W1, 1, 1, first 0 w 0);
kernel!(X3W1, 3, 1, first 2 w 0 x 1 x 0);
kernel!(X3W2, 3, 2, first 1 w 1 x 0 w 0 x 1 x 2);
kernel!(X3W3, 3, 3, first 0 w 2 w 1 x 1 w 0 x 2 x 0);

/// # Safety
/// As for [`TileMachine::multiply`](super::machine::TileMachine::multiply).
pub unsafe fn multiply(terms: Terms, product: &StripProduct) {
    macro_rules! by_tiles {
        ($name:ident) => {
            // SAFETY: guaranteed by the caller.
            unsafe { if product.rows > TILE_ROWS { $name::run::<2>(product) } else { $name::run::<1>(product) } }
        };
    }
    match terms {
        Terms::X1W1 => by_tiles!(X1W1),
        Terms::X3W1 => by_tiles!(X3W1),
        Terms::X3W2 => by_tiles!(X3W2),
        Terms::X3W3 => by_tiles!(X3W3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The products that a kernel takes, as the operations of its assembly load the operands.
    #[test]
    fn kernels_take_the_products_of_their_definition_in_its_order() {
        let kernels = [
            (Terms::X1W1, X1W1::OPERATIONS),
            (Terms::X3W1, X3W1::OPERATIONS),
            (Terms::X3W2, X3W2::OPERATIONS),
            (Terms::X3W3, X3W3::OPERATIONS),
        ];
        for (terms, operations) in kernels {
            let (mut x, mut w, mut products) = (None, None, Vec::new());
            for &(operand, term) in operations {
                if operand == "w" {
                    w = Some(term)
                } else {
                    x = Some(term)
                }
                if operand != "first" {
                    products.push((x.unwrap(), w.unwrap()));
                }
            }
            assert_eq!(products, terms.products(), "{terms:?}");
        }
    }
}
