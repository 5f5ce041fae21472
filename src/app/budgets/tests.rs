//! Files in directories of their own; no test knows this user's home.

use super::*;
use std::ffi::OsString;

fn files(directory: &Path) -> BudgetFiles {
    let directory = Some(directory.to_owned());
    BudgetFiles { directory, device: "cpu".into(), hardware: "An 8-Core Processor".into(), threads: 2 }
}

fn names(directory: &Path) -> Vec<OsString> {
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn the_variables_say_where() {
    let directory_for = |vars: &[(&str, &str)]| {
        directory(|name| vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    };
    let home = ("HOME", "/home/u");
    assert_eq!(directory_for(&[home]), Some("/home/u/.cache/pdr-audit/batch-budgets".into()));
    assert_eq!(directory_for(&[("XDG_CACHE_HOME", "/c"), home]), Some("/c/pdr-audit/batch-budgets".into()));
    assert_eq!(
        directory_for(&[("XDG_CACHE_HOME", "c"), home]),
        directory_for(&[home]),
        "relative ones are to be passed over"
    );
    assert_eq!(directory_for(&[("XDG_CACHE_HOME", ""), home]), directory_for(&[home]));
    assert_eq!(directory_for(&[("HOME", "")]), None);
    assert_eq!(directory_for(&[]), None);
}

#[test]
fn a_budget_is_found_under_its_own_conditions_and_no_others() {
    let place = tempfile::tempdir().unwrap();
    // A directory that is not there yet.
    let directory = place.path().join("a/b");
    let ours = || files(&directory);
    assert_eq!(ours().find("model"), None);
    ours().keep("model", 1_024);
    assert_eq!(ours().find("model"), Some(1_024));
    assert_eq!(ours().find("another"), None);
    assert_eq!(BudgetFiles { device: "cuda:0".into(), ..ours() }.find("model"), None);
    assert_eq!(BudgetFiles { hardware: String::new(), ..ours() }.find("model"), None);
    assert_eq!(BudgetFiles { threads: 3, ..ours() }.find("model"), None);
    BudgetFiles { threads: 3, ..ours() }.keep("model", 512);
    ours().keep("model", 2_048);
    assert_eq!(ours().find("model"), Some(2_048));
    assert_eq!(BudgetFiles { threads: 3, ..ours() }.find("model"), Some(512));
    assert_eq!(names(&directory).len(), 2, "one file each, and nothing else is left");
}

#[test]
fn a_file_that_is_not_ours_is_passed_over_and_replaced() {
    let place = tempfile::tempdir().unwrap();
    let ours = files(place.path());
    let path = ours.conditions("model").path(place.path());
    ours.keep("model", 1_024);
    let good = std::fs::read_to_string(&path).unwrap();
    let other_model = good.replace("\"model\": \"model\"", "\"model\": \"another\"");
    let bad = [
        String::new(),
        "{}".to_owned(),
        good[..good.len() / 2].to_owned(),
        good.replace(PROGRAM, "pdr-audit of other sources"),
        good.replace("1024", "-1"),
        good.replace("1024", "1e99"),
        other_model,
        " ".repeat(1 << 20),
    ];
    for text in bad {
        assert_ne!(text, good);
        std::fs::write(&path, &text).unwrap();
        assert_eq!(ours.find("model"), None, "{text}");
        ours.keep("model", 1_024);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), good);
    }
    // Bytes that are no text.
    std::fs::write(&path, [0xff; 100]).unwrap();
    assert_eq!(ours.find("model"), None);
}

#[test]
fn a_place_that_cannot_be_written_is_no_error() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    std::fs::write(&file, "").unwrap();
    let nowhere = BudgetFiles { directory: None, ..files(&file) };
    for budgets in [files(&file), files(&file.join("below")), nowhere] {
        budgets.keep("model", 1_024);
        assert_eq!(budgets.find("model"), None);
    }
    // A directory stands where the file belongs.
    let ours = files(place.path());
    std::fs::create_dir(ours.conditions("model").path(place.path())).unwrap();
    ours.keep("model", 1_024);
    assert_eq!(ours.find("model"), None);
    assert_eq!(names(place.path()).len(), 2);
}

#[test]
fn many_may_write_at_once() {
    let place = tempfile::tempdir().unwrap();
    let budgets = [512, 1_024, 2_048, 4_096];
    files(place.path()).keep("model", budgets[0]);
    std::thread::scope(|scope| {
        for tokens in budgets {
            let ours = files(place.path());
            scope.spawn(move || {
                for _ in 0..20 {
                    ours.keep("model", tokens);
                    let known = ours.find("model");
                    assert!(known.is_some_and(|known| budgets.contains(&known)), "{known:?}");
                }
            });
        }
    });
    assert_eq!(names(place.path()).len(), 1);
}
