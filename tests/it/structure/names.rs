//! Names of types, functions and bindings, and lengths of files.

use super::rust_code::code;
use super::sources::{Sources, attributes, condition, is_test};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::Item;
use syn::visit::{self, Visit};

/// Names that do not describe what they stand for.
const VAGUE: [&str; 5] = ["at", "found", "made", "of", "own"];

/// Types that are defined more than once, with the files that define them. Definitions under different conditions, as
/// `#[cfg(unix)]` and `#[cfg(not(unix))]`, are of one type.
pub fn types_defined_twice(sources: &Sources) -> Vec<String> {
    let mut definitions: BTreeMap<String, Vec<(String, &str)>> = BTreeMap::new();
    for file in &sources.files {
        for (name, condition) in types(&file.syntax.items, &file.condition) {
            definitions.entry(name).or_default().push((condition, &file.path));
        }
    }
    definitions.retain(|_, places| {
        let conditions: BTreeSet<_> = places.iter().map(|(condition, _)| condition).collect();
        places.len() > 1 && (conditions.len() < places.len() || conditions.iter().any(|condition| condition.is_empty()))
    });
    let line = |(name, places): (_, Vec<(_, &str)>)| {
        format!("{name}: {}", places.into_iter().map(|(_, path)| path).collect::<Vec<_>>().join(", "))
    };
    definitions.into_iter().map(line).collect()
}

/// The types among items that are under a condition, and the conditions of each.
fn types(items: &[Item], around: &str) -> Vec<(String, String)> {
    let condition = |item: &Item| around.to_owned() + &condition(attributes(item));
    let mut types = Vec::new();
    for item in items.iter().filter(|item| !is_test(attributes(item))) {
        match item {
            Item::Enum(syn::ItemEnum { ident, .. })
            | Item::Struct(syn::ItemStruct { ident, .. })
            | Item::Trait(syn::ItemTrait { ident, .. })
            | Item::Type(syn::ItemType { ident, .. })
            | Item::Union(syn::ItemUnion { ident, .. }) => types.push((ident.to_string(), condition(item))),
            Item::Mod(syn::ItemMod { content: Some((_, inner)), .. }) => {
                types.extend(self::types(inner, &condition(item)))
            }
            _ => {}
        }
    }
    types
}

/// Functions, and bindings of `let`, that have a vague name.
pub fn vague_names(syntax: &syn::File) -> Vec<String> {
    #[derive(Default)]
    struct Visitor(Vec<String>);
    impl Visitor {
        fn add(&mut self, name: &syn::Ident) {
            self.0.extend(VAGUE.iter().find(|vague| name == *vague).map(|vague| (*vague).to_owned()));
        }
    }
    impl<'ast> Visit<'ast> for Visitor {
        fn visit_signature(&mut self, signature: &'ast syn::Signature) {
            self.add(&signature.ident);
            visit::visit_signature(self, signature);
        }
        fn visit_local(&mut self, local: &'ast syn::Local) {
            bound_names(&local.pat).into_iter().for_each(|name| self.add(name));
            visit::visit_local(self, local);
        }
        fn visit_expr_let(&mut self, condition: &'ast syn::ExprLet) {
            bound_names(&condition.pat).into_iter().for_each(|name| self.add(name));
            visit::visit_expr_let(self, condition);
        }
    }
    let mut visitor = Visitor::default();
    visitor.visit_file(syntax);
    visitor.0
}

/// The names that a pattern binds.
fn bound_names(pattern: &syn::Pat) -> Vec<&syn::Ident> {
    struct Visitor<'a>(Vec<&'a syn::Ident>);
    impl<'ast> Visit<'ast> for Visitor<'ast> {
        fn visit_pat_ident(&mut self, binding: &'ast syn::PatIdent) {
            self.0.push(&binding.ident);
            visit::visit_pat_ident(self, binding);
        }
    }
    let mut visitor = Visitor(Vec::new());
    visitor.visit_pat(pattern);
    visitor.0
}

/// Lines that hold code: neither blank, nor comments, nor documentation, nor inside a module under `#[cfg(test)]`.
pub fn lines_of_code(text: &str) -> usize {
    let mut lines = BTreeSet::new();
    add_lines(code(text).expect("the file is Rust"), &mut lines);
    lines.len()
}

fn add_lines(tokens: TokenStream, lines: &mut BTreeSet<usize>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                lines.extend([group.span_open().start().line, group.span_close().end().line]);
                add_lines(group.stream(), lines);
            }
            token => lines.extend(token.span().start().line..=token.span().end().line),
        }
    }
}
