//! Numbers as sums of bf16 terms.

use super::isa::Products;
use super::matrix::Element;
use half::bf16;
use strum::VariantArray;

/// Numbers of bf16 terms of an activation (X) and of a weight (W), and the products of terms that are summed.
///
/// A term is the nearest bf16 to what the terms before it leave, so that three have
/// the 24 significant bits of f32. Left out are products of an order below that of the last term: they are smaller than what the split
/// itself loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum Terms {
    X1W1,
    X3W1,
    X3W2,
    X3W3,
}

impl Terms {
    /// As many as `products` need of weights in this type: f16 is exactly two terms, bf16 exactly one.
    pub fn new(products: Products, element: Element) -> Self {
        match (products, element) {
            (Products::Bf16, _) => Self::X1W1,
            (Products::F32, Element::Bf16) => Self::X3W1,
            (Products::F32, Element::F16) => Self::X3W2,
            (Products::F32, Element::F32) => Self::X3W3,
        }
    }

    /// Terms of an activation.
    pub const fn activation(self) -> usize {
        match self {
            Self::X1W1 => 1,
            Self::X3W1 | Self::X3W2 | Self::X3W3 => 3,
        }
    }

    /// Terms of a weight.
    pub const fn weight(self) -> usize {
        match self {
            Self::X1W1 | Self::X3W1 => 1,
            Self::X3W2 => 2,
            Self::X3W3 => 3,
        }
    }

    /// The terms of the activation and of the weight in each product, in the order of summation. From one product to the
    /// next, only one of the two changes.
    pub const fn products(self) -> &'static [(usize, usize)] {
        match self {
            Self::X1W1 => &[(0, 0)],
            Self::X3W1 => &[(2, 0), (1, 0), (0, 0)],
            Self::X3W2 => &[(1, 1), (0, 1), (0, 0), (1, 0), (2, 0)],
            Self::X3W3 => &[(0, 2), (0, 1), (1, 1), (1, 0), (2, 0), (0, 0)],
        }
    }
}

/// The terms of a weight. Where the nearest bf16 to a finite number would be infinite, the first term is the largest finite
/// one.
pub fn split<const T: usize>(mut rest: f32) -> [u16; T] {
    std::array::from_fn(|_| {
        let nearest = bf16::from_f32(rest);
        let term = if rest.is_finite() && nearest.is_infinite() { bf16::MAX.copysign(nearest) } else { nearest };
        rest -= term.to_f32();
        term.to_bits()
    })
}

/// The number that a bf16 stands for.
pub fn widened(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}
