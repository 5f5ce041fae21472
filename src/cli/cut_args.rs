//! The flags that say how texts are cut into passages, and a line that says what was read.

use super::scoring_args::variant;
use crate::wire::number_of;
use anyhow::{Context, Result};
use clap::Args;
use documents::{Cut, CutAt, DroppedCounts, PassageTally};

/// The flags of a cut.
#[derive(Args, Clone, Copy, Default)]
pub struct CutArgs {
    /// Cut texts into passages of at most this many words, each scored by itself. Documents are cut in any case, by default after
    /// 128 words; the texts of files of samples stay whole by default.
    #[arg(long, value_name = "WORDS")]
    cut: Option<usize>,
    /// Number of words of the end of a passage that the next one begins with; at most half of `--cut`.
    #[arg(long, value_name = "WORDS")]
    overlap: Option<usize>,
    /// Unit that a passage holds whole while it fits, by default paragraph; what is longer than a passage is cut at the next finer one.
    #[arg(long, value_name = "UNIT", value_parser = variant::<CutAt>())]
    at: Option<CutAt>,
}

impl CutArgs {
    /// The cut of the flags; `None` where none is given.
    ///
    /// # Errors
    /// Where passages cannot be cut so.
    pub fn given(self) -> Result<Option<Cut>> {
        if self.cut.is_none() && self.overlap.is_none() && self.at.is_none() {
            return Ok(None);
        }
        let default = Cut::default();
        let cut = Cut {
            words: self.cut.unwrap_or(default.words),
            overlap: self.overlap.unwrap_or(default.overlap),
            at: self.at.unwrap_or(default.at),
        };
        cut.check().context("--cut, --overlap")?;
        Ok(Some(cut))
    }
}

/// Returns the counts of documents in one line, and a line for each file that was skipped.
pub fn summary(tally: &PassageTally, skipped: &[String]) -> String {
    let DroppedCounts { gutenberg, front_matter, contents, page_lines, symbols, repeated } = tally.dropped;
    let dropped = [
        (gutenberg.pieces, "headers and licences of Project Gutenberg"),
        (front_matter.pieces, "front matter"),
        (contents.pieces, "tables of contents"),
        (page_lines.pieces, "headers and footers of pages"),
        (symbols.pieces, "passages with fewer letters than symbols"),
        (repeated.pieces, "passages that repeat an earlier one"),
    ];
    let dropped: Vec<String> =
        dropped.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{what} ({count})")).collect();
    let left_out = if dropped.is_empty() { String::new() } else { format!("; left out: {}", dropped.join(", ")) };
    let [documents, passages] = [(tally.documents, "document"), (tally.passages, "passage")]
        .map(|(count, noun)| number_of(usize::try_from(count).unwrap_or(usize::MAX), noun));
    let skipped: String = skipped.iter().map(|file| format!("skipped: {}\n", file.escape_debug())).collect();
    format!("{documents}, {passages}, {} words{left_out}\n{skipped}", tally.words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use documents::DropCount;

    #[test]
    fn a_summary_names_what_was_left_out() {
        let mut tally = PassageTally { documents: 1, passages: 12, words: 900, ..PassageTally::default() };
        assert_eq!(summary(&tally, &[]), "1 document, 12 passages, 900 words\n");
        tally.dropped.repeated = DropCount { pieces: 2, words: 9 };
        let expected = "1 document, 12 passages, 900 words; left out: passages that repeat an earlier one (2)\nskipped: a\\u{7}: it is hidden\n";
        assert_eq!(summary(&tally, &["a\u{7}: it is hidden".to_owned()]), expected);
    }

    #[test]
    fn a_cut_that_is_none_is_refused() {
        assert!(CutArgs::default().given().unwrap().is_none());
        let cut = CutArgs { cut: Some(64), ..CutArgs::default() };
        assert_eq!(cut.given().unwrap(), Some(Cut { words: 64, ..Cut::default() }));
        let overlapping = CutArgs { overlap: Some(128), ..CutArgs::default() };
        assert!(overlapping.given().unwrap_err().to_string().contains("--cut, --overlap"));
    }
}
