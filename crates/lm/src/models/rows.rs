//! The rows of a matrix on disk, a few at a time, in canonical order.

use super::error::ModelError;
use super::files::FileBytes;
use super::positioned::Sector;
use std::ops::Range;

/// Bytes between two rows that are read for nothing, rather than by two reads.
const GAP: usize = 64 << 10;

/// A matrix whose rows are the parts' rows, one part after the other.
pub struct StoredRows<'a> {
    parts: Vec<Part<'a>>,
    /// For each canonical row, its row on disk, if the order differs.
    order: Option<Vec<usize>>,
    /// Bytes of a row.
    width: usize,
}

struct Part<'a> {
    file: &'a FileBytes,
    /// The position of its first byte.
    start: usize,
    rows: Range<usize>,
}

impl<'a> StoredRows<'a> {
    /// A matrix of rows of `width` bytes in some places of files.
    pub fn new(
        places: impl IntoIterator<Item = (&'a FileBytes, Range<usize>)>,
        order: Option<Vec<usize>>,
        width: usize,
    ) -> Self {
        let mut parts: Vec<Part> = Vec::new();
        for (file, bytes) in places {
            let first = parts.last().map_or(0, |part| part.rows.end);
            parts.push(Part { file, start: bytes.start, rows: first..first + bytes.len() / width.max(1) });
        }
        Self { parts, order, width }
    }

    /// Reads some rows into a buffer and calls `take` with the bytes of each.
    ///
    /// # Errors
    /// [`ModelError::File`] if a file cannot be read.
    pub fn read(
        &self,
        rows: Range<usize>,
        buffer: &mut Vec<Sector>,
        take: &mut dyn FnMut(&[&[u8]]),
    ) -> Result<(), ModelError> {
        let rows: Vec<usize> = match &self.order {
            None => rows.collect(),
            Some(order) => order[rows].to_vec(),
        };
        let runs = self.runs(&rows);
        let sectors = |run: &Range<usize>| Sector::count(run.len() * self.width);
        buffer.resize(buffer.len().max(runs.iter().map(sectors).sum()), Sector::ZERO);
        let (mut windows, mut rest) = (Vec::with_capacity(runs.len()), &mut buffer[..]);
        for run in &runs {
            let (window, others) = rest.split_at_mut(sectors(run));
            let part = &self.parts[self.part(run.start)];
            let start = part.start + (run.start - part.rows.start) * self.width;
            windows.push(part.file.window(start..start + run.len() * self.width, window)?);
            rest = others;
        }
        let bytes = |row: &usize| {
            let run = runs.partition_point(|run| run.end <= *row);
            let start = (row - runs[run].start) * self.width;
            &windows[run][start..start + self.width]
        };
        take(&rows.iter().map(bytes).collect::<Vec<_>>());
        Ok(())
    }

    /// Ranges of rows on disk that have these rows in them, in ascending order, each within a part.
    fn runs(&self, rows: &[usize]) -> Vec<Range<usize>> {
        let mut ascending = rows.to_vec();
        ascending.sort_unstable();
        let mut runs: Vec<Range<usize>> = Vec::new();
        for row in ascending {
            let is_near =
                |run: &&mut Range<usize>| (row - run.end) * self.width <= GAP && self.part(run.start) == self.part(row);
            match runs.last_mut().filter(is_near) {
                Some(run) => run.end = row + 1,
                None => runs.push(row..row + 1),
            }
        }
        runs
    }

    /// The index of the part that has a row.
    fn part(&self, row: usize) -> usize {
        self.parts.partition_point(|part| part.rows.end <= row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_their_bytes_and_few_others_are_read() {
        const WIDTH: usize = 24 << 10;
        let content = |rows: Range<u8>| FileBytes::Loaded(rows.flat_map(|row| vec![row; WIDTH]).collect());
        // The second part begins behind a row that does not belong to it.
        let (first, second) = (content(0..10), content(99..120));
        let places = || [(&first, 0..10 * WIDTH), (&second, WIDTH..21 * WIDTH)];
        let stored = |row: usize| if row < 10 { row as u8 } else { (row + 90) as u8 };
        let order: Vec<usize> = (0..15).flat_map(|row| [row, 29 - row]).collect();
        for order in [None, Some(order)] {
            let rows = StoredRows::new(places(), order.clone(), WIDTH);
            let (mut buffer, mut calls) = (Vec::new(), 0);
            rows.read(8..14, &mut buffer, &mut |bytes| {
                let want = (8..14).map(|row| stored(order.as_ref().map_or(row, |order| order[row])));
                assert!(bytes.len() == 6 && bytes.iter().zip(want).all(|(row, want)| **row == [want; WIDTH]));
                calls += 1;
            })
            .unwrap();
            assert_eq!(calls, 1);
        }
        let rows = StoredRows::new(places(), None, WIDTH);
        // Two rows are nearer than the longest gap, three are not, and no run leaves its part.
        assert_eq!(rows.runs(&[5, 0, 10, 3]), [0..6, 10..11]);
        assert_eq!(rows.runs(&[4, 0]), [0..1, 4..5]);
        assert_eq!(rows.runs(&[10, 9, 11]), [9..10, 10..12]);
    }
}
