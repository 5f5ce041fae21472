//! Templates of canaries.

use thiserror::Error;

/// The words of slots, one a line.
const WORDS: &str = include_str!("words.txt");

/// Numbers of slots.
const NUMBERS: std::ops::RangeInclusive<usize> = 1000..=9999;

/// A text with slots that are filled at random: `{word}` by one of 256 words, `{number}` by a number from 1000 to 9999,
/// `{one|other|third}` by one of these. `{{` and `}}` are braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<TemplatePart>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Word,
    Number,
    Choice(Vec<String>),
}

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateError {
    #[error("it has no slot, such as `{{word}}` or `{{red|green}}`, so that all its texts are equal")]
    NoSlot,
    #[error("`{{` at byte {0} has no `}}`; a brace itself is written twice")]
    Open(usize),
    #[error("`}}` at byte {0} has no `{{`; a brace itself is written twice")]
    Close(usize),
    #[error("`{{{0}}}` is no slot: it is `word`, `number`, or at least two different texts with `|` between them")]
    Slot(String),
}

impl Template {
    /// So many words of the list with blanks between them.
    #[must_use]
    pub fn words(count: usize) -> Self {
        let blank = || TemplatePart::Text(" ".to_owned());
        let parts = (0..count).flat_map(|place| (place > 0).then(blank).into_iter().chain([TemplatePart::Word]));
        Self(parts.collect())
    }

    /// Reads a template.
    ///
    /// # Errors
    /// Where a brace has no counterpart, a slot is unknown, or there is none.
    pub fn parse(template: &str) -> Result<Self, TemplateError> {
        let (mut parts, mut text, mut rest) = (Vec::new(), String::new(), template);
        while let Some(brace) = rest.find(['{', '}']) {
            text.push_str(&rest[..brace]);
            let offset = template.len() - rest.len() + brace;
            let (is_open, after) = (rest.as_bytes()[brace] == b'{', &rest[brace + 1..]);
            let same = if is_open { '{' } else { '}' };
            if let Some(after) = after.strip_prefix(same) {
                text.push(same);
                rest = after;
            } else if is_open {
                let end = after.find('}').ok_or(TemplateError::Open(offset))?;
                parts.extend((!text.is_empty()).then(|| TemplatePart::Text(std::mem::take(&mut text))));
                parts.push(TemplatePart::slot(&after[..end])?);
                rest = &after[end + 1..];
            } else {
                return Err(TemplateError::Close(offset));
            }
        }
        text.push_str(rest);
        parts.extend((!text.is_empty()).then_some(TemplatePart::Text(text)));
        let has_slot = parts.iter().any(|part| !matches!(part, TemplatePart::Text(_)));
        if has_slot { Ok(Self(parts)) } else { Err(TemplateError::NoSlot) }
    }

    /// The number of different texts, as far as it can be counted.
    #[must_use]
    pub fn texts(&self) -> usize {
        let choices = |part: &TemplatePart| match part {
            TemplatePart::Text(_) => 1,
            TemplatePart::Word => WORDS.lines().count(),
            TemplatePart::Number => NUMBERS.count(),
            TemplatePart::Choice(texts) => texts.len(),
        };
        self.0.iter().map(choices).fold(1, usize::saturating_mul)
    }

    /// A text, its slots filled by `below`, which draws a uniform number below its argument.
    pub fn fill(&self, below: &mut impl FnMut(usize) -> usize) -> String {
        let words: Vec<&str> = WORDS.lines().collect();
        let mut text = String::new();
        for part in &self.0 {
            match part {
                TemplatePart::Text(fixed) => text.push_str(fixed),
                TemplatePart::Word => text.push_str(words[below(words.len())]),
                TemplatePart::Number => text.push_str(&(NUMBERS.start() + below(NUMBERS.count())).to_string()),
                TemplatePart::Choice(texts) => text.push_str(&texts[below(texts.len())]),
            }
        }
        text
    }
}

impl TemplatePart {
    fn slot(name: &str) -> Result<Self, TemplateError> {
        match name {
            "word" => return Ok(Self::Word),
            "number" => return Ok(Self::Number),
            _ => {}
        }
        let texts: Vec<String> = name.split('|').map(str::to_owned).collect();
        let are_different = texts.iter().enumerate().all(|(place, text)| !texts[..place].contains(text));
        if texts.len() > 1 && are_different {
            Ok(Self::Choice(texts))
        } else {
            Err(TemplateError::Slot(name.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_filled_and_braces_kept() {
        let template = Template::parse("{{On}} {May|June} {number} the {word} of {red|green}.").unwrap();
        assert_eq!(template.texts(), 2 * 9000 * 256 * 2);
        assert_eq!(template.fill(&mut |_| 0), "{On} May 1000 the acorn of red.");
        assert_eq!(template.fill(&mut |bound| bound - 1), "{On} June 9999 the winter of green.");
        assert_eq!(Template::words(3).fill(&mut |_| 1), "amber amber amber");
    }

    #[test]
    fn the_words_are_256_different_ones() {
        let mut words: Vec<&str> = WORDS.lines().collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 256);
        assert!(words.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_lowercase())));
    }

    #[test]
    fn every_fault_is_named() {
        let fault = |template: &str| Template::parse(template).unwrap_err();
        assert_eq!(fault("no slot {{here}}"), TemplateError::NoSlot);
        assert_eq!(fault("\u{e9} {word"), TemplateError::Open(3));
        assert_eq!(fault("a } b"), TemplateError::Close(2));
        for slot in ["", "Word", "one", "a|a", "a||"] {
            assert_eq!(fault(&format!("{{{slot}}}")), TemplateError::Slot(slot.to_owned()));
        }
        assert!(Template::parse("{a|}").is_ok(), "a slot may be left empty");
    }
}
