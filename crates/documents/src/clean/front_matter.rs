//! The front matter of Markdown: fields in YAML between `---` and `---`, or in TOML between `+++` and `+++`, before the text.

use super::line::{DropKind, TextLine};
use super::lookahead::Lookahead;
use crate::error::DocumentError;

/// Longest front matter, in lines and in bytes.
const LINES: usize = 1_000;
const BYTES: usize = 64 << 10;

pub struct FrontMatterFilter<I> {
    lines: Lookahead<I>,
    /// Lines that are still to be marked; `None` before the first line was looked at.
    left: Option<usize>,
}

impl<I: Iterator<Item = Result<TextLine, DocumentError>>> FrontMatterFilter<I> {
    pub fn new(lines: I, is_markdown: bool) -> Self {
        Self { lines: Lookahead::new(lines), left: (!is_markdown).then_some(0) }
    }

    /// The number of lines of the front matter; none unless it is closed and holds fields.
    fn length(&mut self) -> usize {
        let Some(fence) = self.lines.peek(0).and_then(|line| Fence::from_line(line.text.trim_end())) else { return 0 };
        let (mut bytes, mut has_field) = (0, false);
        for index in 1..LINES {
            let Some(line) = self.lines.peek(index) else { return 0 };
            let text = line.text.trim_end();
            if fence.is_closed_by(text) {
                return if has_field { index + 1 } else { 0 };
            }
            if !has_field && !text.is_empty() && !text.starts_with('#') {
                if !fence.is_field(text) {
                    return 0;
                }
                has_field = true;
            }
            bytes += text.len();
            if bytes > BYTES {
                return 0;
            }
        }
        0
    }
}

impl<I: Iterator<Item = Result<TextLine, DocumentError>>> Iterator for FrontMatterFilter<I> {
    type Item = Result<TextLine, DocumentError>;

    fn next(&mut self) -> Option<Self::Item> {
        let left = self.left.unwrap_or_else(|| self.length());
        self.left = Some(left.saturating_sub(1));
        let mut line = self.lines.next()?;
        if let Ok(line) = &mut line
            && left > 0
        {
            line.dropped = Some(DropKind::FrontMatter);
        }
        Some(line)
    }
}

#[derive(Clone, Copy)]
enum Fence {
    Yaml,
    Toml,
}

impl Fence {
    fn from_line(text: &str) -> Option<Self> {
        match text {
            "---" => Some(Self::Yaml),
            "+++" => Some(Self::Toml),
            _ => None,
        }
    }

    fn is_closed_by(self, text: &str) -> bool {
        match self {
            Self::Yaml => text == "---" || text == "...",
            Self::Toml => text == "+++",
        }
    }

    /// Returns true if a line gives a field its value: a name, which is one word, and a separator.
    fn is_field(self, text: &str) -> bool {
        let separator = match self {
            Self::Yaml => ':',
            Self::Toml if text.starts_with('[') => return true,
            Self::Toml => '=',
        };
        let Some((name, value)) = text.split_once(separator) else { return false };
        let name = name.trim_end().trim_matches(['"', '\'']);
        let is_name = |character: char| character.is_alphanumeric() || "_-.".contains(character);
        // `12:30` and `https://...` are no fields.
        let is_separated = value.is_empty() || value.starts_with(char::is_whitespace) || matches!(self, Self::Toml);
        !name.is_empty() && name.chars().all(is_name) && is_separated
    }
}

#[cfg(test)]
mod tests {
    use super::super::dropped;
    use super::*;

    #[test]
    fn fields_before_the_text_are_dropped() {
        for matter in [
            "---\ntitle: A book\ntags:\n  - one\n\nrating: 5\n---\n",
            "---\n# made by hand\n\"title\": A book\n...\n",
            "+++\ntitle = \"A book\"\n[author]\nname = \"B\"\n+++\n",
            "---\r\ntitle: A book\r\n---\r\n",
        ] {
            assert_eq!(dropped(&format!("{matter}# Text\n---\n"), true, DropKind::FrontMatter), matter);
            assert_eq!(dropped(&format!("{matter}# Text\n"), false, DropKind::FrontMatter), "", "not in plain text");
        }
    }

    #[test]
    fn text_between_lines_stays() {
        for text in [
            "---\nA thematic break: and a paragraph.\n---\n",
            "---\n\n---\ntext",
            "---\ntitle: never closed\n",
            "\n---\ntitle: not at the start\n---\n",
            "----\ntitle: A book\n----\n",
            "---\n12:30 we went home\n---\n",
            "---",
            "",
        ] {
            assert_eq!(dropped(text, true, DropKind::FrontMatter), "", "{text}");
        }
    }
}
