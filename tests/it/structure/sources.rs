//! The modules of a crate and what they define, read from its sources.

use super::rust_code::code;
use quote::ToTokens;
use std::collections::BTreeMap;
use syn::{Attribute, Item, ItemMod, UseTree};

/// Gives the text of the file at a path, if there is one.
pub type Read<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The sources of a library without its tests.
pub struct Sources {
    /// The first is that of the root.
    pub files: Vec<SourceFile>,
    /// The first is the root.
    pub modules: Vec<Module>,
}

pub struct SourceFile {
    /// Relative to the directory of the root, as `engine/mod.rs`.
    pub path: String,
    pub module: usize,
    /// The `#[cfg(..)]` of the modules that it is in.
    pub condition: String,
    pub syntax: syn::File,
}

/// A module, in a file of its own or inside another one's.
#[derive(Default)]
pub struct Module {
    pub file: usize,
    pub parent: Option<usize>,
    pub children: BTreeMap<String, usize>,
    /// The names of its items but modules and imports.
    items: Vec<String>,
    /// Paths that imported names stand for.
    imports: BTreeMap<String, Vec<String>>,
    /// Modules whose names are all imported.
    globs: Vec<Vec<String>>,
}

impl Sources {
    /// Reads the modules from `lib.rs` on.
    pub fn read(read: Read) -> Self {
        let mut sources = Self { files: Vec::new(), modules: Vec::new() };
        sources.add_file("lib.rs", "", None, String::new(), read);
        sources
    }

    /// Reads a file and the modules that it declares, whose files are in `directory`.
    fn add_file(&mut self, path: &str, directory: &str, parent: Option<usize>, condition: String, read: Read) -> usize {
        let text = read(path).unwrap_or_else(|| panic!("there is no {path}"));
        let mut syntax: syn::File = syn::parse2(code(&text).unwrap()).unwrap_or_else(|e| panic!("{path}: {e}"));
        syntax.items.retain(|item| !is_test(attributes(item)));
        let module = self.modules.len();
        let file = self.files.len();
        self.modules.push(Module { file, parent, ..Module::default() });
        self.files.push(SourceFile { path: path.to_owned(), module, condition, syntax: syntax.clone() });
        self.add_items(module, &syntax.items, directory, read);
        module
    }

    fn add_items(&mut self, module: usize, items: &[Item], directory: &str, read: Read) {
        for item in items {
            match item {
                Item::Mod(child) => {
                    let name = child.ident.to_string();
                    let index = self.add_module(module, child, &format!("{directory}{name}"), read);
                    self.modules[module].children.insert(name, index);
                }
                Item::Use(item) => self.modules[module].add_imports(&item.tree),
                item => self.modules[module].items.extend(name(item)),
            }
        }
    }

    fn add_module(&mut self, parent: usize, module: &ItemMod, stem: &str, read: Read) -> usize {
        let directory = format!("{stem}/");
        let Some((_, items)) = &module.content else {
            let path = [format!("{stem}.rs"), format!("{stem}/mod.rs")].into_iter().find(|path| read(path).is_some());
            let path = path.unwrap_or_else(|| panic!("the module `{stem}` has no file"));
            let condition = self.files[self.modules[parent].file].condition.clone() + &condition(&module.attrs);
            return self.add_file(&path, &directory, Some(parent), condition, read);
        };
        let index = self.modules.len();
        let file = self.modules[parent].file;
        self.modules.push(Module { file, parent: Some(parent), ..Module::default() });
        self.add_items(index, items, &directory, read);
        index
    }

    /// The names that lead to a module from the root.
    pub fn path_of_module(&self, module: usize) -> Vec<String> {
        let Some(parent) = self.modules[module].parent else { return Vec::new() };
        let name = self.modules[parent].children.iter().find(|(_, child)| **child == module).map(|(name, _)| name);
        [self.path_of_module(parent), name.cloned().into_iter().collect()].concat()
    }

    /// The file that defines what a path in a module leads to, or `None` for what is in another crate. A name that is not to
    /// be seen, as one that a macro makes, counts as defined by the module that it is looked up in. The path of a module
    /// leads to no file: what is taken from the module shows where a name of it is used.
    pub fn definition(&self, module: usize, path: &[String]) -> Option<usize> {
        (1..=path.len()).rev().find_map(|length| match self.find(module, &path[..length], 0)? {
            Target::Item(file) => Some(Some(file)),
            Target::Module(module) => Some((length < path.len()).then(|| self.modules[module].file)),
        })?
    }

    fn find(&self, module: usize, path: &[String], depth: usize) -> Option<Target> {
        let Some((first, rest)) = path.split_first().filter(|_| depth < 16) else {
            return (depth < 16).then_some(Target::Module(module));
        };
        let here = &self.modules[module];
        match first.as_str() {
            "crate" => return self.find(0, rest, depth),
            "self" => return self.find(module, rest, depth),
            "super" => return self.find(here.parent?, rest, depth),
            _ => {}
        }
        if let Some(&child) = here.children.get(first) {
            return self.find(child, rest, depth);
        }
        if here.items.contains(first) {
            return Some(Target::Item(here.file));
        }
        let imported = here.imports.get(first).map(|import| [import, rest].concat());
        let through_globs = here.globs.iter().map(|glob| [glob, path].concat());
        imported.into_iter().chain(through_globs).find_map(|path| self.find(module, &path, depth + 1))
    }
}

/// Target of a path: an item in a file, or a module.
enum Target {
    Item(usize),
    Module(usize),
}

impl Module {
    fn add_imports(&mut self, tree: &UseTree) {
        for (path, name) in leaves(tree, &[]) {
            match name {
                Some(name) => drop(self.imports.insert(name, path)),
                None => self.globs.push(path),
            }
        }
    }
}

/// The paths of a `use` with the names that they get; a path without a name stands for all names in it.
pub fn leaves(tree: &UseTree, before: &[String]) -> Vec<(Vec<String>, Option<String>)> {
    let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
    match tree {
        UseTree::Path(path) => leaves(&path.tree, &with(&path.ident)),
        UseTree::Name(name) if name.ident == "self" => vec![(before.to_vec(), before.last().cloned())],
        UseTree::Name(name) => vec![(with(&name.ident), Some(name.ident.to_string()))],
        UseTree::Rename(rename) if rename.ident == "self" => vec![(before.to_vec(), Some(rename.rename.to_string()))],
        UseTree::Rename(rename) => vec![(with(&rename.ident), Some(rename.rename.to_string()))],
        UseTree::Glob(_) => vec![(before.to_vec(), None)],
        UseTree::Group(group) => group.items.iter().flat_map(|tree| leaves(tree, before)).collect(),
    }
}

/// The `#[cfg(..)]` among attributes.
pub fn condition(attributes: &[Attribute]) -> String {
    let conditions = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    conditions.map(|attribute| attribute.to_token_stream().to_string()).collect()
}

/// True if an item is under `#[cfg(test)]`.
pub fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Path>().is_ok_and(|only| only.is_ident("test"))
    })
}

pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn name(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}
