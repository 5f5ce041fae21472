//! The unit of work of the kernels.

use super::pack::Packed;
use super::rows::Rows;
use crate::models::kernels::shared_mut::SharedMut;
use std::ops::Range;

/// Where results are written: rows `stride` apart, added to the existing values or replacing them.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub out: SharedMut,
    pub stride: usize,
    pub accumulate: bool,
}

/// At most [`ROWS`](super::blocking::ROWS) rows and one panel, of which the first `columns` results are computed.
pub(super) struct Tile<'a> {
    pub weights: &'a Packed,
    pub x: &'a Rows<'a>,
    pub rows: Range<usize>,
    pub panel: usize,
    pub columns: usize,
}
