//! Every check of the structure finds violations that are planted in small sources.

use super::*;
use std::collections::BTreeMap;

/// Sources for a test, by path.
fn planted(files: &[(&str, &str)]) -> Sources {
    let files: BTreeMap<_, _> = files.iter().copied().collect();
    Sources::read(&|path| files.get(path).map(|text| (*text).to_owned()))
}

/// The imports of `lib.rs` among files `a.rs`, `b.rs` and so on, in the order of their names.
fn imports_of_root(code: &str) -> Vec<String> {
    let letters = ["a", "b", "c", "d"];
    let mut files = vec![("lib.rs".to_owned(), format!("mod a; mod b; mod c; mod d; {code}"))];
    files.extend(
        letters.map(|letter| (format!("{letter}.rs"), format!("pub struct In{letter}; pub fn {letter}() {{}}"))),
    );
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let sources = planted(&files);
    let imports = imports(&sources);
    imports[0].iter().map(|&file| sources.files[file].path.replace(".rs", "")).collect()
}

#[test]
fn imports_are_found_in_every_form() {
    for (code, imported) in [
        ("use crate::a::Ina;", vec!["a"]),
        ("use crate::{a, b::{b, Inb as Other}, c as d}; fn f() { a::a() }", vec!["a", "b"]),
        ("use a::*; fn f() -> Ina { todo!() }", vec!["a"]),
        ("fn f() -> crate::a::Ina { self::b::b() }", vec!["a", "b"]),
        ("fn f<T: Into<a::Ina>>() where Vec<c::Inc>: Sized {}", vec!["a", "c"]),
        ("mod inner { use super::a::Ina; fn f() { use super::super::b; b::b() } }", vec!["a"]),
        ("mod inner { fn f() { crate::d::d() } }", vec!["d"]),
        ("fn f() { println!(\"{} {}\", a::a(), [crate::b::b()]) }", vec!["a", "b"]),
        ("fn f() { d::made_by_a_macro() }", vec!["d"]),
        ("pub use a::Ina; pub(crate) use self::b::b;", vec![]),
        ("pub use a::Ina; fn f(_: Ina) {}", vec!["a"]),
        ("use crate::{a, b}; pub(in crate::c) fn f() { std::fmt::a() }", vec![]),
        ("// crate::a::Ina\n/// crate::b::b()\nfn f() -> &'static str { \"crate::c::c()\" }", vec![]),
        ("#[cfg(test)] mod tests { use crate::a::Ina; } #[cfg(test)] fn f() { b::b() } #[cfg(test)] use c::c;", vec![]),
    ] {
        assert_eq!(imports_of_root(code), imported, "{code}");
    }
}

#[test]
fn imports_are_followed_through_re_exports() {
    let sources = planted(&[
        ("lib.rs", "mod user; mod room; #[cfg(test)] mod tests;"),
        ("user.rs", "use crate::room::{Chair as Seat, Table}; fn f() { crate::room::sit() }"),
        ("room/mod.rs", "mod chair; mod table; pub use chair::*; pub use table::Table; pub fn sit() {}"),
        ("room/chair.rs", "pub struct Chair;"),
        ("room/table/mod.rs", "mod leg; pub use leg::Leg as Table;"),
        ("room/table/leg.rs", "pub struct Leg;"),
    ]);
    let user = sources.files.iter().position(|file| file.path == "user.rs").unwrap();
    let imported: Vec<_> = imports(&sources)[user].iter().map(|&file| &*sources.files[file].path).collect();
    assert_eq!(imported, ["room/mod.rs", "room/chair.rs", "room/table/leg.rs"]);
}

#[test]
fn an_import_upward_is_found() {
    let layers: &[&[&str]] = &[&["low", "beside"], &["high"]];
    let check = |low: &str, high: &str| {
        let sources = [
            ("lib.rs", "mod low; mod high; mod beside;"),
            ("low.rs", low),
            ("high.rs", high),
            ("beside.rs", "pub fn f() {}"),
        ];
        imports_upward(&planted(&sources), layers)
    };
    assert_eq!(check("pub fn f() {}", "use crate::low::f; use crate::beside;"), [""; 0]);
    assert_eq!(check("fn f() { super::high::g() }", "pub fn g() {}"), ["low.rs imports high.rs"]);
    assert_eq!(check("use crate::beside::f;", ""), ["low.rs imports beside.rs"]);
    assert_eq!(imports_upward(&planted(&[("lib.rs", "mod new;"), ("new.rs", "")]), layers), ["`new` has no layer"]);
}

#[test]
fn a_circle_of_files_is_found() {
    let check = |parent: &str, one: &str, two: &str, beside: &str| {
        let files = [("a/mod.rs", parent), ("a/one.rs", one), ("a/two.rs", two), ("b.rs", beside)];
        circles_of_files(&planted(&[&[("lib.rs", "mod a; mod b;")], &files[..]].concat()))
    };
    let parent = "mod one; mod two; pub use one::One; pub struct Parent;";
    let (one, two) = ("pub struct One;", "pub struct Two(super::One, super::Parent);");
    assert_eq!(check(parent, one, two, "use crate::a::{One, Parent};"), [""; 0]);
    let circle = "2 files\n    a/one.rs imports a/two.rs\n    a/two.rs imports a/one.rs";
    assert_eq!(check(parent, &format!("{one} use super::two::Two;"), two, ""), [circle]);
    // A `mod.rs` may be imported by its children or import them, and not both.
    let circle = "2 files\n    a/mod.rs imports a/two.rs\n    a/two.rs imports a/mod.rs";
    assert_eq!(check(&format!("{parent} fn f(_: two::Two) {{}}"), one, two, ""), [circle]);
    assert_eq!(check(&format!("{parent} fn f(_: one::One) {{}}"), one, two, ""), [""; 0]);
    let parent = format!("{parent} fn f(_: One) {{}}");
    let circle = "3 files\n    a/mod.rs imports a/one.rs\n    a/one.rs imports b.rs\n    b.rs imports a/mod.rs";
    assert_eq!(check(&parent, &format!("{one} use crate::b::B;"), two, "pub struct B(crate::a::Parent);"), [circle]);
}

#[test]
fn a_circle_of_folders_is_found() {
    // No two of the files import each other.
    let files = |parent: &'static str, low: &'static str, beside: &'static str| {
        [
            ("lib.rs", "mod a;"),
            ("a/mod.rs", parent),
            ("a/beside.rs", beside),
            ("a/left/mod.rs", "pub mod low; pub mod high;"),
            ("a/left/low.rs", low),
            ("a/left/high.rs", "use crate::a::right::Right;"),
            ("a/right.rs", "pub mod inner; pub struct Right;"),
            ("a/right/inner.rs", "use crate::a::left::low::Low; pub struct Inner;"),
        ]
    };
    let check = |parent, low, beside| {
        let sources = planted(&files(parent, low, beside));
        assert_eq!(circles_of_files(&sources), [""; 0]);
        circles_of_folders(&sources)
    };
    let modules = "mod beside; pub mod left; pub mod right;";
    let left_and_right = "a: left, right\n    left -> right: a/left/high.rs imports a/right.rs\n    right -> left: \
        a/right/inner.rs imports a/left/low.rs";
    assert_eq!(check(modules, "pub struct Low;", ""), [left_and_right]);
    let three = "a: beside, left, right\n    beside -> right: a/beside.rs imports a/right/inner.rs\n    left -> beside: \
        a/left/low.rs imports a/beside.rs\n    left -> right: a/left/high.rs imports a/right.rs\n    right -> left: \
        a/right/inner.rs imports a/left/low.rs";
    let beside = "use crate::a::right::inner::Inner; pub struct Beside;";
    let low = "pub struct Low; use crate::a::beside::Beside;";
    assert_eq!(circles_of_folders(&planted(&files(modules, low, beside))), [three]);
}

#[test]
fn a_circle_of_a_folder_with_what_is_beside_it_is_found() {
    let check = |inner_mod: &str, low: &str, high: &str, beside: &str| {
        let files = [
            ("lib.rs", "mod a;"),
            ("a/mod.rs", "mod beside; mod inner; pub struct Parent; use beside::Beside;"),
            ("a/beside.rs", beside),
            ("a/inner/mod.rs", inner_mod),
            ("a/inner/low.rs", low),
            ("a/inner/high.rs", high),
        ];
        let sources = planted(&files);
        assert_eq!(circles_of_files(&sources), [""; 0]);
        circles_of_folders(&sources)
    };
    let (modules, low) = ("pub mod low; pub mod high;", "pub struct Low;");
    let beside = "pub struct Beside; use super::inner::low::Low;";
    assert_eq!(check(modules, low, "use super::low::Low;", beside), [""; 0]);
    // With a file.
    let circle = "a: beside, inner\n    beside -> inner: a/beside.rs imports a/inner/low.rs\n    inner -> beside: \
        a/inner/high.rs imports a/beside.rs";
    assert_eq!(check(modules, low, "use crate::a::beside::Beside;", beside), [circle]);
    // With the file of the module that holds both.
    let circle = "a: beside, inner, mod\n    beside -> inner: a/beside.rs imports a/inner/low.rs\n    inner -> mod: \
        a/inner/high.rs imports a/mod.rs\n    mod -> beside: a/mod.rs imports a/beside.rs";
    assert_eq!(check(modules, low, "use crate::a::Parent;", beside), [circle]);
}

#[test]
fn a_circle_of_folders_inside_folders_is_found() {
    let files = [
        ("lib.rs", "mod a;"),
        ("a.rs", "mod b;"),
        ("a/b/mod.rs", "mod left; mod right;"),
        ("a/b/left/mod.rs", "pub mod low; pub struct Left;"),
        ("a/b/left/low.rs", "pub struct Low;"),
        ("a/b/right.rs", "use super::left::low::Low; pub mod inner;"),
        ("a/b/right/inner.rs", "pub struct Inner;"),
    ];
    let check = |left: &'static str| {
        let mut files = files;
        files[3].1 = left;
        circles_of_folders(&planted(&files))
    };
    assert_eq!(check("pub mod low; pub struct Left;"), [""; 0]);
    let circle = "a/b: left, right\n    left -> right: a/b/left/mod.rs imports a/b/right/inner.rs\n    right -> left: \
        a/b/right.rs imports a/b/left/low.rs";
    assert_eq!(check("pub mod low; use super::right::inner::Inner;"), [circle]);
}

#[test]
fn a_type_that_is_defined_twice_is_found() {
    let check =
        |a: &str, b: &str| types_defined_twice(&planted(&[("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", b)]));
    assert_eq!(
        check("struct A; fn a() { struct C; }", "enum B {} #[cfg(test)] mod tests { struct A; } struct C;"),
        [""; 0]
    );
    assert_eq!(check("#[cfg(unix)] struct A; #[cfg(not(unix))] struct A;", ""), [""; 0]);
    assert_eq!(check("#[cfg(unix)] mod c { struct A; } #[cfg(not(unix))] mod d { struct A; }", ""), [""; 0]);
    assert_eq!(check("struct A;", "mod inner { type A = u8; }"), ["A: a.rs, b.rs"]);
    assert_eq!(check("trait A {}", "enum A {}"), ["A: a.rs, b.rs"]);
    assert_eq!(check("union A { a: u8 }", "#[cfg(unix)] struct A;"), ["A: a.rs, b.rs"]);
    assert_eq!(check("#[cfg(unix)] struct A; #[cfg(unix)] struct A;", ""), ["A: a.rs, a.rs"]);
}

#[test]
fn only_lines_of_code_are_counted() {
    let text = "//! A file.\n\n/// One.\nfn f() {\n    // two\n    let text = \"three\n    four\n    \";\n}\n";
    assert_eq!(lines_of_code(text), 5);
    assert_eq!(lines_of_code(&format!("{text}\n#[cfg(test)]\nmod tests {{\n    fn g() {{}}\n}}\n")), 5);
    assert_eq!(lines_of_code(&"fn f() {\n}\n".repeat(LONGEST)), 2 * LONGEST);
}

#[test]
fn vague_names_are_found() {
    let check = |code: &str| vague_names(&syn::parse_file(code).unwrap());
    assert_eq!(check("struct S { at: u8 } fn often(s: S) { let S { at: place } = s; let position = s.at; }"), [""; 0]);
    assert_eq!(check("fn of() {} trait T { fn own(); } impl S { fn made() {} }"), ["of", "own", "made"]);
    assert_eq!(check("fn f() { let at = 1; let mut found = 2; let (a, own): (u8, u8); }"), ["at", "found", "own"]);
    assert_eq!(check("fn f() { if let Some(found) = g() && let Some(S { at, .. }) = h() {} }"), ["found", "at"]);
}
