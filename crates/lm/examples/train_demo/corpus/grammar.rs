//! Surface grammar: articles, capitals, spacing, number words.

/// Represents "a" or "an" in a template, which depends on the next word.
pub const ARTICLE: &str = "@";

/// Characters that may precede the first or follow the last letter of a word.
const QUOTES: [char; 2] = ['"', '\''];

const NUMBER_WORDS: &[&str] = &[
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
];

const ORDINAL_WORDS: &[&str] = &[
    "zeroth", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
    "eleventh", "twelfth",
];

/// Words that start with a vowel letter but a consonant sound.
const CONSONANT_SOUND: &[&str] = &["one", "once", "uni", "use", "usu", "eu", "ute"];

/// Words that start with a silent h.
const SILENT_H: &[&str] = &["hour", "honest", "honour", "heir"];

/// The number in words up to twenty, in digits above.
pub fn number_words(n: u32) -> String {
    NUMBER_WORDS.get(n as usize).map_or_else(|| n.to_string(), |word| (*word).to_string())
}

/// The ordinal in words up to twelfth, in digits above (for which "th" is right up to twenty).
pub fn ordinal_words(n: u32) -> String {
    ORDINAL_WORDS.get(n as usize).map_or_else(|| format!("{n}th"), |word| (*word).to_string())
}

/// The number with commas between groups of three digits.
pub fn grouped(n: u32) -> String {
    if n < 1000 { n.to_string() } else { format!("{},{:03}", grouped(n / 1000), n % 1000) }
}

/// Returns true if "an" belongs before `word`.
pub fn takes_an(word: &str) -> bool {
    let lower = word.trim_start_matches(QUOTES).to_ascii_lowercase();
    let starts_with_any = |list: &[&str]| list.iter().any(|start| lower.starts_with(start));
    if lower.starts_with(|c: char| c.is_ascii_digit()) {
        return digits_take_an(&lower);
    }
    starts_with_any(SILENT_H) || (lower.starts_with(['a', 'e', 'i', 'o', 'u']) && !starts_with_any(CONSONANT_SOUND))
}

/// "an 8", "an 11", "an 18,000", but "a 110".
fn digits_take_an(word: &str) -> bool {
    let whole = word.split(|c: char| !c.is_ascii_digit() && c != ',').next().unwrap_or_default();
    let leading = whole.split(',').next().unwrap_or_default();
    leading.starts_with('8') || leading == "11" || leading == "18"
}

/// Resolves articles, starts sentences with a capital, and leaves one space between words.
pub fn tidy(raw: &str) -> String {
    let words: Vec<&str> = raw.split_whitespace().collect();
    let mut out = String::with_capacity(raw.len());
    let mut starts_sentence = true;
    for (i, word) in words.iter().enumerate() {
        let next = words.get(i + 1).copied().unwrap_or_default();
        let article = if takes_an(next) { "an" } else { "a" };
        let word = word.replace(ARTICLE, article);
        if !out.is_empty() {
            out.push(' ');
        }
        push_word(&mut out, &word, starts_sentence);
        starts_sentence = word.trim_end_matches(QUOTES).ends_with(['.', '!', '?']);
    }
    out
}

fn push_word(out: &mut String, word: &str, capital: bool) {
    let first_letter = word.find(|c| !QUOTES.contains(&c)).unwrap_or(0);
    for (at, c) in word.char_indices() {
        out.push(if capital && at == first_letter { c.to_ascii_uppercase() } else { c });
    }
}

/// The number of words of a text.
pub fn word_count(text: &str) -> usize {
    text.split_whitespace().count()
}
