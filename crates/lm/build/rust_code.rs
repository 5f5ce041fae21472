//! The code of a Rust file, without what cannot change what it computes. The build script includes this file, and so do tests.

use proc_macro2::{Group, LexError, TokenStream, TokenTree};

/// The tokens of a source text without comments, documentation and modules under `#[cfg(test)]`. Nothing else under
/// `#[cfg(test)]` is left out.
///
/// # Errors
///
/// Where the text is not Rust.
pub fn code(source: &str) -> Result<TokenStream, LexError> {
    source.parse().map(stripped)
}

fn stripped(tokens: TokenStream) -> TokenStream {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut rest = &tokens[..];
    let mut kept = Vec::new();
    while let [first, following @ ..] = rest {
        rest = after_documentation(rest).or_else(|| after_tests(rest)).unwrap_or_else(|| {
            kept.push(stripped_inside(first));
            following
        });
    }
    kept.into_iter().collect()
}

fn stripped_inside(token: &TokenTree) -> TokenTree {
    let TokenTree::Group(group) = token else { return token.clone() };
    let mut inside = Group::new(group.delimiter(), stripped(group.stream()));
    inside.set_span(group.span());
    inside.into()
}

/// Returns the tokens after `#[doc = ".."]` or `#![doc = ".."]`, which documentation comments are parsed as.
fn after_documentation(tokens: &[TokenTree]) -> Option<&[TokenTree]> {
    let (attribute, rest) = split_attribute(tokens)?;
    attribute.starts_with("doc =").then_some(rest)
}

/// Returns the tokens after a module under `#[cfg(test)]`, whether it is inline or a file of its own.
fn after_tests(tokens: &[TokenTree]) -> Option<&[TokenTree]> {
    let (attribute, mut rest) = split_attribute(tokens)?;
    if attribute.replace(' ', "") != "cfg(test)" {
        return None;
    }
    while let Some((_, following)) = split_attribute(rest) {
        rest = following;
    }
    match rest {
        [TokenTree::Ident(keyword), _name, _content, following @ ..] if keyword == "mod" => Some(following),
        _ => None,
    }
}

/// The text inside the brackets of an attribute, and what follows it.
fn split_attribute(tokens: &[TokenTree]) -> Option<(String, &[TokenTree])> {
    let is = |token: &TokenTree, mark| matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark);
    match tokens {
        [hash, bang, TokenTree::Group(attribute), rest @ ..] if is(hash, '#') && is(bang, '!') => {
            Some((attribute.stream().to_string(), rest))
        }
        [hash, TokenTree::Group(attribute), rest @ ..] if is(hash, '#') => Some((attribute.stream().to_string(), rest)),
        _ => None,
    }
}
