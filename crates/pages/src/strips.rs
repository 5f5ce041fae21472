//! Texts, token by token: what each token adds to the score, its weight, and whether the method selects it.

use maud::{Markup, html};

/// Maximum number of tokens of a text that are shown, and of those that are in its table.
const MOST_TOKENS: usize = 1_024;
const MOST_ROWS: usize = 100;

/// Shades of a token; the stylesheet has a class for each.
const SHADES: usize = 6;

/// A text of an audit with its tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextStrip {
    /// Place of the sample, from 0.
    pub index: usize,
    /// True for a member; `None` without a label.
    pub member: Option<bool>,
    /// Label of the method that the rest is of.
    pub method: String,
    /// `None` if the method cannot score the text.
    pub score: Option<f64>,
    pub tokens: Vec<StripToken>,
}

/// A token of a text, under one method.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StripToken {
    pub text: String,
    /// Log-probability in nats; `None` for a token that is never scored.
    pub lp: Option<f64>,
    /// Weight; `None` if the method weights no tokens.
    pub weight: Option<f64>,
    /// Part of the score.
    pub contribution: Option<f64>,
    /// True if the method selects tokens, and this one among them.
    pub selected: bool,
}

/// The section of the texts; nothing without any.
pub fn strips(texts: &[TextStrip]) -> Markup {
    let Some(first) = texts.first() else { return html! {} };
    html! {
        h2 { "Texts, token by token" }
        p {
            "The first " (texts.len()) " texts by " code { (first.method) } ". The stronger its colour, the larger the part of a token in the score: \
             blue parts are below 0, orange ones above. Tokens that the method selects are underlined."
        }
        @for text in texts { (strip(text)) }
    }
}

fn strip(text: &TextStrip) -> Markup {
    let TextStrip { index, member, method, score, tokens } = text;
    let shown = &tokens[..tokens.len().min(MOST_TOKENS)];
    let listed = &tokens[..tokens.len().min(MOST_ROWS)];
    let largest = tokens.iter().filter_map(|token| token.contribution).map(f64::abs).fold(0.0, f64::max);
    let label = match member {
        Some(true) => ", member",
        Some(false) => ", non-member",
        None => "",
    };
    html! {
        h3 { "Text " (index) (label) }
        @match score {
            Some(score) => p { "Score " (format!("{score:.4}")) ", " (tokens.len()) " tokens" },
            None => p { code { (method) } " cannot score it." },
        }
        p.strip {
            @for token in shown { span class=[class(token, largest)] { (visible(&token.text)) } }
        }
        (more(tokens.len(), shown.len()))
        details {
            summary { "The tokens as a table" }
            table {
                thead { tr {
                    th scope="col" { "token" } th scope="col" { "log-probability" } th scope="col" { "weight" }
                    th scope="col" { "part of the score" } th scope="col" { "selected" }
                } }
                tbody {
                    @for token in listed { tr {
                        th scope="row" { code { (token.text.escape_debug()) } }
                        td { (number(token.lp)) } td { (number(token.weight)) } td { (number(token.contribution)) }
                        td { @if token.selected { "yes" } @else { "no" } }
                    } }
                }
            }
            (more(tokens.len(), listed.len()))
        }
    }
}

fn more(all: usize, shown: usize) -> Markup {
    html! { @if all > shown { p.note { (all - shown) " more tokens" } } }
}

/// The piece with characters that would be invisible, or turn the direction of others, as their numbers.
fn visible(piece: &str) -> String {
    let hidden = |character: char| {
        (character.is_control() && character != '\n' && character != '\t')
            || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let shown = |character: char| {
        if hidden(character) { format!("<U+{:04X}>", u32::from(character)) } else { character.to_string() }
    };
    piece.chars().map(shown).collect()
}

fn number(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.4}"))
}

/// The classes of a token: its sign and shade, and whether it is selected; `None` if it has neither.
fn class(token: &StripToken, largest: f64) -> Option<String> {
    let contribution = token.contribution.filter(|part| largest > 0.0 && *part != 0.0);
    let shade = contribution.map(|part| {
        let level = (part.abs() / largest * SHADES as f64).ceil().clamp(1.0, SHADES as f64);
        format!("{}{level}", if part < 0.0 { "below" } else { "above" })
    });
    let selected = token.selected.then(|| "selected".to_owned());
    let classes: Vec<String> = shade.into_iter().chain(selected).collect();
    (!classes.is_empty()).then(|| classes.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_shaded_by_its_part_and_its_sign() {
        let token =
            |contribution, selected| StripToken { contribution: Some(contribution), selected, ..StripToken::default() };
        assert_eq!(class(&token(-6.0, true), 6.0).as_deref(), Some("below6 selected"));
        assert_eq!(class(&token(0.5, false), 6.0).as_deref(), Some("above1"));
        assert_eq!(class(&token(0.0, true), 6.0).as_deref(), Some("selected"));
        assert_eq!(class(&token(0.0, false), 0.0), None);
    }

    #[test]
    fn a_text_cannot_leave_its_place() {
        let text = "</span><script>alert(1)</script>\u{202e}".to_owned();
        let tokens = vec![StripToken { text, ..StripToken::default() }; 2_000];
        let html = strips(&[TextStrip { tokens, ..TextStrip::default() }]).into_string();
        assert!(!html.contains("<script"), "{html}");
        assert!(html.contains("&lt;U+202E&gt;") && !html.contains('\u{202e}'), "{html}");
        assert!(html.contains("976 more tokens") && html.contains("1900 more tokens"), "{html}");
        assert_eq!(strips(&[]).into_string(), "");
    }
}
