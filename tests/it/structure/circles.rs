//! Circles of files, and of the files and folders of a folder.

use super::imports::imports;
use super::sources::Sources;
use std::collections::{BTreeMap, BTreeSet};

/// Groups of files that import each other, as lines of text.
pub fn circles_of_files(sources: &Sources) -> Vec<String> {
    let imports = imports(sources);
    let path = |file: usize| sources.files[file].path.as_str();
    let arrows = |circle: &Vec<usize>| {
        let others = |file: usize| imports[file].iter().filter(|&other| circle.contains(other));
        let arrow = |&file: &usize| {
            let others: Vec<_> = others(file).map(|&other| path(other)).collect();
            format!("\n    {} imports {}", path(file), others.join(", "))
        };
        format!("{} files{}", circle.len(), circle.iter().map(arrow).collect::<String>())
    };
    circles(&imports).iter().map(arrows).collect()
}

/// Groups of children of one module that import each other, as lines of text. A child counts with everything in it; the file
/// of the module itself is a child named `mod`. What is beside the root file are children of the root.
pub fn circles_of_folders(sources: &Sources) -> Vec<String> {
    let paths: Vec<Vec<String>> = sources.files.iter().map(|file| sources.path_of_module(file.module)).collect();
    let mut arrows: BTreeMap<&[String], Arrows> = BTreeMap::new();
    for (from, imported) in imports(sources).into_iter().enumerate() {
        for to in imported {
            let shared = paths[from].iter().zip(&paths[to]).take_while(|(from, to)| from == to).count();
            let child = |file: usize| paths[file].get(shared).map_or("mod", |name| name);
            let arrow = format!("{} imports {}", sources.files[from].path, sources.files[to].path);
            let arrows = arrows.entry(&paths[from][..shared]).or_default();
            arrows.entry((child(from), child(to))).or_insert(arrow);
        }
    }
    let lines = |(module, arrows): (&[String], Arrows)| circles_inside(&module.join("/"), &arrows);
    arrows.into_iter().flat_map(lines).collect()
}

/// Pairs of children of a module where the first imports the second, with the first import that shows it.
type Arrows<'a> = BTreeMap<(&'a str, &'a str), String>;

fn circles_inside(module: &str, arrows: &Arrows) -> Vec<String> {
    let children: BTreeSet<&str> = arrows.keys().flat_map(|&(from, to)| [from, to]).collect();
    let children: Vec<&str> = children.into_iter().collect();
    let imports_of = |from| {
        let is_imported = |to: &usize| arrows.contains_key(&(from, children[*to]));
        (0..children.len()).filter(is_imported).collect()
    };
    let imports: Vec<BTreeSet<usize>> = children.iter().map(|&child| imports_of(child)).collect();
    let lines = |circle: Vec<usize>| {
        let names: Vec<&str> = circle.into_iter().map(|child| children[child]).collect();
        let inside = arrows.iter().filter(|((from, to), _)| names.contains(from) && names.contains(to));
        let arrows: String = inside.map(|((from, to), import)| format!("\n    {from} -> {to}: {import}")).collect();
        format!("{module}: {}{arrows}", names.join(", "))
    };
    circles(&imports).into_iter().map(lines).collect()
}

/// Groups of numbers that import each other, directly or through others of the group.
fn circles(imports: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let reached: Vec<BTreeSet<usize>> = (0..imports.len()).map(|from| reached(imports, from)).collect();
    let group = |from: usize| reached[from].iter().copied().filter(|&other| reached[other].contains(&from)).collect();
    let groups: BTreeSet<Vec<usize>> = (0..imports.len()).map(group).collect();
    groups.into_iter().filter(|group| !group.is_empty()).collect()
}

/// Returns everything reachable by one import or more.
fn reached(imports: &[BTreeSet<usize>], from: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<usize> = imports[from].iter().copied().collect();
    while let Some(file) = waiting.pop() {
        if reached.insert(file) {
            waiting.extend(&imports[file]);
        }
    }
    reached
}
