//! The words of a text.

use unicode_normalization::char::is_combining_mark;

/// The words of a text in order: the longest runs of letters, digits and underscores, as Python's `re.findall(r"\w+",
/// text)`. A combining mark separates words there, and so it does here.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character| !is_word_character(character)).filter(|word| !word.is_empty())
}

/// Returns true if a character is an underscore or in one of Unicode's general categories L (letters) and N (numbers).
fn is_word_character(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_alphanumeric() || character == '_';
    }
    // The standard library counts marks and symbols as alphabetic that Unicode lists as `Other_Alphabetic`.
    character.is_alphanumeric() && !is_combining_mark(character) && !is_enclosed_letter(character)
}

/// Letters in circles and squares, the alphabetic symbols (category So).
fn is_enclosed_letter(character: char) -> bool {
    matches!(character,
        '\u{24b6}'..='\u{24e9}' | '\u{1f130}'..='\u{1f149}' | '\u{1f150}'..='\u{1f169}' | '\u{1f170}'..='\u{1f189}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str) -> Vec<&str> {
        words(text).collect()
    }

    #[test]
    fn words_are_runs_of_letters_digits_and_underscores() {
        assert_eq!(listed("  The trial_2 began, in MARCH-2023!"), ["The", "trial_2", "began", "in", "MARCH", "2023"]);
        assert_eq!(
            listed("caf\u{e9} \u{6771}\u{4eac}\u{3001}\u{bd} x\u{b2}"),
            ["caf\u{e9}", "\u{6771}\u{4eac}", "\u{bd}", "x\u{b2}"]
        );
        assert!(listed(" -- \u{2014}\n").is_empty() && listed("").is_empty());
    }

    #[test]
    fn marks_and_symbols_separate_words() {
        assert_eq!(listed("cafe\u{301}s"), ["cafe", "s"]);
        assert_eq!(listed("\u{915}\u{93e}\u{92e}"), ["\u{915}", "\u{92e}"]);
        assert_eq!(listed("a\u{24d0}b\u{1f130}c\u{2160}d"), ["a", "b", "c\u{2160}d"]);
    }

    /// Python 3.11 (Unicode 14): in ranges to which later versions of Unicode add no letter, the number of code points
    /// that match `\w`, and their sum modulo 1,000,003.
    #[test]
    fn python_agrees() {
        let ranges = [
            (0x0..0x860_u32, 1529, 594_488),
            (0x900..0xc00, 405, 71_664),
            (0x1e00..0x2c00, 722, 980_430),
            (0x3041..0x3100, 183, 277_926),
            (0x3400..0xa000, 27_584, 964_188),
            (0xac00..0xd7a4, 11_172, 325_048),
            (0xf900..0xfe00, 1119, 15_293),
            (0x1_d400..0x1_d800, 986, 636_862),
            (0x1_f100..0x1_f200, 13, 654_091),
        ];
        for (range, count, checksum) in ranges {
            let matching: Vec<u32> =
                range.clone().filter(|&code| char::from_u32(code).is_some_and(is_word_character)).collect();
            let sum: u64 = matching.iter().map(|&code| u64::from(code)).sum();
            assert_eq!((matching.len(), sum % 1_000_003), (count, checksum), "{range:x?}");
        }
    }
}
