//! Sets of rows that grow together.

/// The connected components of rows, by union and find (Tarjan 1975). Rows beyond the last one are not joined.
#[derive(Debug)]
pub(super) struct Components {
    /// A row that is its own parent is the first one of its component.
    parents: Vec<usize>,
}

impl Components {
    /// Every row alone.
    pub fn new(rows: usize) -> Self {
        Self { parents: (0..rows).collect() }
    }

    /// The first row of the component.
    pub fn first(&mut self, mut row: usize) -> usize {
        while let Some(&parent) = self.parents.get(row) {
            if parent == row {
                break;
            }
            // Halves the path on the way.
            self.parents[row] = self.parents[parent];
            row = self.parents[row];
        }
        row
    }

    pub fn joined(&mut self, one: usize, other: usize) -> bool {
        self.first(one) == self.first(other)
    }

    pub fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.first(one), self.first(other));
        if let Some(parent) = self.parents.get_mut(one.max(other)) {
            *parent = one.min(other);
        }
    }

    /// The component of each row, numbered from 0 by first appearance.
    pub fn numbers(mut self) -> Vec<usize> {
        let mut numbers = Vec::with_capacity(self.parents.len());
        let mut components = 0;
        for row in 0..self.parents.len() {
            let first = self.first(row);
            // The first row of a component comes before the others, so it has its number.
            let number = numbers.get(first).copied().unwrap_or(components);
            components += usize::from(first == row);
            numbers.push(number);
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_numbered_by_first_appearance() {
        let mut components = Components::new(7);
        for (one, other) in [(5, 3), (6, 1), (3, 6)] {
            components.join(one, other);
        }
        assert!(components.joined(1, 5) && !components.joined(0, 5));
        components.join(2, 2);
        assert_eq!(components.numbers(), [0, 1, 2, 1, 3, 1, 1]);
        assert!(Components::new(0).numbers().is_empty());
    }
}
