//! Imports between files.

use super::sources::{SourceFile, Sources, attributes, is_test, leaves};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;
use syn::visit::{self, Visit};

/// For each file those whose items it uses.
pub fn imports(sources: &Sources) -> Vec<BTreeSet<usize>> {
    sources.files.iter().map(|file| imports_of(sources, file)).collect()
}

fn imports_of(sources: &Sources, file: &SourceFile) -> BTreeSet<usize> {
    let mut visitor = Visitor { sources, module: file.module, files: BTreeSet::new() };
    visitor.visit_file(&file.syntax);
    visitor.files.remove(&sources.modules[file.module].file);
    visitor.files
}

struct Visitor<'a> {
    sources: &'a Sources,
    /// The module of what is visited, which an inline module changes.
    module: usize,
    files: BTreeSet<usize>,
}

impl Visitor<'_> {
    fn add(&mut self, path: &[String]) {
        self.files.extend(self.sources.definition(self.module, path));
    }

    /// True if a path begins at a child of the module.
    fn is_in_child(&self, path: &[String]) -> bool {
        let first = path.iter().find(|name| *name != "self");
        first.is_some_and(|first| self.sources.modules[self.module].children.contains_key(first))
    }

    /// The tokens of a macro's call are no syntax tree, so every sequence of names and `::` in them counts as a path.
    fn add_paths(&mut self, tokens: TokenStream) {
        let mut path = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.add(&std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                other => {
                    self.add(&std::mem::take(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.add_paths(group.stream());
                    }
                }
            }
        }
        self.add(&path);
    }
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let Some((_, items)) = &item.content else { return };
        let outer = self.module;
        self.module = self.sources.modules[outer].children[&item.ident.to_string()];
        items.iter().for_each(|item| self.visit_item(item));
        self.module = outer;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_public = !matches!(item.vis, syn::Visibility::Inherited);
        for (path, _) in leaves(&item.tree, &[]) {
            if !(is_public && self.is_in_child(&path)) {
                self.add(&path);
            }
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.add(&names);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.add_paths(call.tokens.clone());
    }

    /// `pub(in crate::a)` takes nothing from there.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}
