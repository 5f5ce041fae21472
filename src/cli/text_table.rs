//! Tables of text that fit the terminal: columns that do not fit are left out, never wrapped, and named below the table.

use super::report_format::hanging;
use std::fmt::Write;

/// Characters between two columns.
const GAP: usize = 2;

/// The width that the label of a method may be cut to.
pub const LABEL: usize = 40;

/// Replaces the end of a cell that is cut.
const ELLIPSIS: &str = "...";

/// A column; the earlier in the table, the more important it is.
pub struct TextColumn {
    name: String,
    is_number: bool,
    /// The width that its cells may be cut to; `None` where they are never cut.
    least: Option<usize>,
}

impl TextColumn {
    /// A column of words, aligned to the left.
    pub fn words(name: impl Into<String>) -> Self {
        Self { name: name.into(), is_number: false, least: None }
    }

    /// A column of numbers, aligned to the right.
    pub fn numbers(name: impl Into<String>) -> Self {
        Self { name: name.into(), is_number: true, least: None }
    }

    /// The same column, whose cells may be cut to this width where there is no room.
    pub fn cut_to(self, least: usize) -> Self {
        Self { least: Some(least), ..self }
    }
}

/// Columns and rows.
pub struct TextTable {
    columns: Vec<TextColumn>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    pub fn new(columns: impl IntoIterator<Item = TextColumn>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row; a cell that is missing is empty.
    pub fn add(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The header, the rows, and a line that names the columns that `width` has no room for; all columns without a width.
    pub fn render(&self, width: Option<usize>) -> String {
        let natural: Vec<usize> = (0..self.columns.len()).map(|place| self.natural_width(place)).collect();
        let layout = TableLayout::new(&self.columns, &natural, width);
        let rows = self.rows.iter().map(|row| layout.line(row));
        format!("{}{}{}", layout.header(), rows.collect::<String>(), layout.left_out())
    }

    fn natural_width(&self, place: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(place)).map(String::as_str);
        let name = self.columns[place].name.as_str();
        cells.chain([name]).map(|cell| cell.chars().count()).max().unwrap_or(0)
    }
}

/// The columns that are shown, and how wide each is. Rows may be written one after another.
pub struct TableLayout {
    shown: Vec<ShownColumn>,
    header: String,
    /// The names of the columns that there is no room for.
    left_out: Vec<String>,
    /// The width that is available.
    width: Option<usize>,
}

/// A column that is shown.
struct ShownColumn {
    /// The place of its cells in a row.
    place: usize,
    width: usize,
    is_number: bool,
}

impl TableLayout {
    /// Chooses from the first column to the last those that there is room for; `natural` has the width that each would like.
    pub fn new(columns: &[TextColumn], natural: &[usize], width: Option<usize>) -> Self {
        let mut room = width.map_or(usize::MAX, |width| width + GAP);
        let (mut shown, mut left_out) = (Vec::with_capacity(columns.len()), Vec::new());
        for (place, (column, natural)) in columns.iter().zip(natural).enumerate() {
            let width = column.least.map_or(*natural, |least| least.min(*natural));
            if shown.is_empty() || width + GAP <= room {
                room = room.saturating_sub(width + GAP);
                shown.push(ShownColumn { place, width, is_number: column.is_number });
            } else {
                left_out.push(column.name.clone());
            }
        }
        for column in &mut shown {
            let more = natural[column.place].saturating_sub(column.width).min(room);
            column.width += more;
            room -= more;
        }
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        let layout = Self { shown, header: String::new(), left_out, width };
        Self { header: layout.line(&names), ..layout }
    }

    pub fn header(&self) -> &str {
        &self.header
    }

    /// The line of a row; a cell that is missing is empty.
    pub fn line(&self, cells: &[String]) -> String {
        let mut line = String::new();
        for &ShownColumn { place, width, is_number } in &self.shown {
            let separator = if line.is_empty() { "" } else { "  " };
            let cell = cut(cells.get(place).map_or("", String::as_str), width);
            // Writing to a String cannot fail.
            let _ = match is_number {
                true => write!(line, "{separator}{cell:>width$}"),
                false => write!(line, "{separator}{cell:<width$}"),
            };
        }
        format!("{}\n", line.trim_end())
    }

    /// Names the columns that are not shown; empty where all are.
    pub fn left_out(&self) -> String {
        let names = self.left_out.join(", ");
        if names.is_empty() { names } else { hanging(&format!("without {names} (--wide shows all)"), self.width) }
    }
}

/// A cell that is at most as wide as its column.
fn cut(cell: &str, width: usize) -> String {
    if cell.chars().count() <= width {
        return cell.to_owned();
    }
    let kept: String = cell.chars().take(width.saturating_sub(ELLIPSIS.len())).collect();
    format!("{kept}{ELLIPSIS}").chars().take(width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(rows: &[[&str; 3]]) -> TextTable {
        let columns =
            [TextColumn::words("method").cut_to(10), TextColumn::numbers("AUROC"), TextColumn::words("vs. baseline")];
        let mut table = TextTable::new(columns);
        rows.iter().for_each(|row| table.add(row.map(str::to_owned)));
        table
    }

    #[test]
    fn columns_without_room_are_left_out_and_named() {
        let table = table(&[["loss", "0.7", ""], ["min_k(k=0.2)", "0.812", "-0.098 on min_k"]]);
        let all = "method        AUROC  vs. baseline\nloss            0.7\nmin_k(k=0.2)  0.812  -0.098 on min_k\n";
        assert_eq!((table.render(None), table.render(Some(40))), (all.to_owned(), all.to_owned()));
        assert_eq!(
            table.render(Some(19)),
            "method        AUROC\nloss            0.7\nmin_k(k=0.2)  0.812\nwithout vs.\n  baseline (--wide\n  shows all)\n"
        );
        assert_eq!(
            table.render(Some(17)),
            "method      AUROC\nloss          0.7\nmin_k(k...  0.812\nwithout vs.\n  baseline\n  (--wide shows\n  all)\n"
        );
    }

    proptest! {
        #[test]
        fn no_row_is_wider_than_the_terminal(
            cells in prop::collection::vec(["[a-z\u{e4}]{0,40}", "[0-9.]{0,9}", "[a-z ]{0,30}"], 0..5),
            width in 10_usize..120,
        ) {
            let rows: Vec<[&str; 3]> = cells.iter().map(|row| [0, 1, 2].map(|place| row[place].as_str())).collect();
            let rendered = table(&rows).render(Some(width));
            for line in rendered.lines().take(rows.len() + 1) {
                prop_assert!(line.chars().count() <= width, "{line}");
            }
            prop_assert_eq!(table(&rows).render(None).lines().count(), rows.len() + 1);
        }
    }
}
