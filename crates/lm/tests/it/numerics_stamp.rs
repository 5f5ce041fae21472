//! The stamp of the numerics covers the code of a source file, and nothing that cannot change a result.

#[path = "../../build/rust_code.rs"]
pub mod rust_code;

fn code(source: &str) -> String {
    rust_code::code(source).unwrap().to_string()
}

#[test]
fn comments_documentation_blank_space_and_tests_do_not_count() {
    let bare = "fn f() -> u32 { 1 + 2 }";
    for same in [
        "//! The module.\n\n/// One more.\nfn f() -> u32 {\n    // three\n    1 /* and */ + 2\n}\n",
        "#![doc = \"The module.\"] #[doc = \"One more.\"] fn f() -> u32 { #![doc = \"Inside.\"] 1 + 2 }",
        "fn f() -> u32 { 1 + 2 }\n#[cfg(test)]\nmod tests;\n",
        "#[cfg(test)]\n#[path = \"other.rs\"]\nmod tests { fn g() {} }\nfn f() -> u32 { 1 + 2 }",
        "fn f() -> u32 { #[cfg(test)] mod inside { mod deeper {} } 1 + 2 }",
    ] {
        assert_eq!(code(same), code(bare), "{same}");
    }
}

#[test]
fn everything_else_counts() {
    let bare = "fn f() -> &'static str { \"a\" }";
    for other in [
        "fn f() -> &'static str { \"a // b\" }",
        "fn f() -> &'static str { \"a /* b */\" }",
        "fn f() -> &'static str { r#\"#[cfg(test)] mod tests;\"# }",
        "#[inline] fn f() -> &'static str { \"a\" }",
        "#[cfg(test)] fn f() -> &'static str { \"a\" }",
        "#[cfg(not(test))] mod tests; fn f() -> &'static str { \"a\" }",
        "#[doc(hidden)] fn f() -> &'static str { \"a\" }",
        "fn f() -> &'static str { \"a\" } mod tests;",
    ] {
        assert_ne!(code(other), code(bare), "{other}");
    }
    assert_ne!(code("fn f() { \"// x\" }"), code("fn f() { \"// y\" }"));
}

#[test]
fn what_is_not_rust_is_an_error() {
    assert!(rust_code::code("fn f() { \"unclosed }").is_err());
}
