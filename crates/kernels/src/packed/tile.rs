//! The unit of work of the kernels for vectors.

use super::pack::Packed;
use super::rows::Rows;
use std::ops::Range;

/// At most [`ROWS`](super::blocking::ROWS) rows and one panel, of which the first `columns` results are computed.
pub(super) struct Tile<'a> {
    pub weights: &'a Packed,
    pub x: &'a Rows<'a>,
    pub rows: Range<usize>,
    pub panel: usize,
    pub columns: usize,
}
