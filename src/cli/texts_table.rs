//! The table of `pdr-audit texts`: counts of the text that was read and left out.

use super::report_format::readable;
use documents::{Documents, DropCount, PassageTally, Passages};
use std::fmt::Write;

/// Columns of the table.
const WIDTH: usize = 80;

/// The result of a run.
pub struct TextsSummary {
    pub tally: PassageTally,
    /// The files that were skipped, each with the reason.
    pub skipped: Vec<String>,
}

impl TextsSummary {
    pub fn new(passages: &Passages<Documents>) -> Self {
        let skipped = passages.documents().skipped().iter().map(|error| readable(&error.to_string())).collect();
        Self { tally: *passages.tally(), skipped }
    }
}

/// The counts, what was left out by kind, and the files that were skipped, in lines of at most 80 columns.
pub fn render(summary: &TextsSummary) -> String {
    let TextsSummary { tally, skipped } = summary;
    let mut out = String::new();
    // Writing to a String cannot fail.
    for (name, count) in [
        ("documents", tally.documents),
        ("  without a passage", tally.documents_without_passages),
        ("passages", tally.passages),
        ("words of passages", tally.words),
        ("skipped files", skipped.len() as u64),
    ] {
        let _ = writeln!(out, "{name:<44}{count:>12}");
    }
    let _ = writeln!(out, "\n{:<44}{:>12}{:>12}", "left out", "pieces", "words");
    let dropped = &tally.dropped;
    for (name, DropCount { pieces, words }) in [
        ("header and licence of Project Gutenberg", dropped.gutenberg),
        ("front matter of Markdown", dropped.front_matter),
        ("tables of contents", dropped.contents),
        ("headers and footers of pages", dropped.page_lines),
        ("passages with fewer letters than symbols", dropped.symbols),
        ("passages that repeat an earlier one", dropped.repeated),
    ] {
        let _ = writeln!(out, "{name:<44}{pieces:>12}{words:>12}");
    }
    if !skipped.is_empty() {
        out.push_str("\nskipped\n");
        skipped.iter().for_each(|line| out.push_str(&wrapped(line)));
    }
    out
}

/// A line as lines of at most 80 columns, the first with an indent of two columns and the others of four.
fn wrapped(line: &str) -> String {
    let mut lines = vec!["  ".to_owned()];
    for word in line.split(' ') {
        let mut rest: Vec<char> = word.chars().collect();
        while !rest.is_empty() {
            let is_new = lines.last().is_none_or(|line| line.trim().is_empty());
            let used = lines.last().map_or(0, |line| line.chars().count());
            let space = usize::from(!is_new);
            if used + space + rest.len() > WIDTH && !is_new {
                lines.push("    ".to_owned());
                continue;
            }
            // A word that is longer than a line is divided.
            let part: String = rest.drain(..rest.len().min(WIDTH - used - space)).collect();
            if let Some(line) = lines.last_mut() {
                line.push_str(if is_new { "" } else { " " });
                line.push_str(&part);
            }
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let long = "folder/".repeat(30);
        let summary = TextsSummary {
            tally: PassageTally { words: u64::MAX / 100_000_000, ..PassageTally::default() },
            skipped: vec![format!("{long}a.txt: {}", "a reason ".repeat(20)), "b.pdf: it is a PDF".to_owned()],
        };
        let table = render(&summary);
        assert!(table.lines().all(|line| line.chars().count() <= WIDTH), "{table}");
        assert!(table.ends_with("\n  b.pdf: it is a PDF\n"), "{table}");
        let joined: String = table.split_whitespace().collect();
        assert!(joined.contains(&format!("{long}a.txt:areasonareason")), "{table}");
        assert_eq!(readable("a\u{1b}[2J\nb"), "a\\u{1b}[2J\\nb");
    }
}
