//! `pdr-audit canary`: drawn, committed to, and opened.

use crate::common::DEMO_BY_DEFAULT;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};

fn canary(arguments: &[&str], directory: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pdr-audit"));
    command.arg("canary").args(arguments).current_dir(directory).envs(DEMO_BY_DEFAULT).output().unwrap()
}

fn refused(output: &Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn canaries_are_opened_as_they_were_made() {
    let directory = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| canary(arguments, directory.path());
    let made = run(&["make", "--count", "30", "--twins", "4", "--words", "12", "--method", "loss", "--out", "c"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let private = read(&directory.path().join("c/private.json"));
    let published = std::fs::read_to_string(directory.path().join("c/publish.jsonl")).unwrap();
    let published: Vec<Value> = published.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((published.len(), &published[29]["id"]), (30, &json!("canary-30")));
    assert!(
        published
            .iter()
            .zip(private["canaries"].as_array().unwrap())
            .all(|(line, canary)| { line["text"] == canary["text"] && canary["twins"].as_array().unwrap().len() == 4 })
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(directory.path().join("c/private.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert!(refused(&run(&["make", "--out", "c"])).contains("exists, and a new draw would make it worthless"));

    let opened = run(&["open", "c/private.json", "--format", "json"]);
    assert!(opened.status.success(), "{}", String::from_utf8_lossy(&opened.stderr));
    let report: Value = serde_json::from_slice(&opened.stdout).unwrap();
    assert_eq!((&report["kind"], &report["commitment"]["matches"]), (&json!("rank"), &json!(true)));
    assert_eq!((&report["methods"][0]["label"], &report["methods"][0]["tested"]), (&json!("loss"), &json!(30)));
    // Nobody has trained the demo model on them. One draw in a hundred would be called evidence.
    assert!(report["methods"][0]["p_value"].as_f64().unwrap() > 1e-4, "{report}");

    let change = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut changed = private.clone();
        change(&mut changed);
        std::fs::write(directory.path().join("c").join(name), changed.to_string()).unwrap();
        refused(&run(&["open", &format!("c/{name}")]))
    };
    let first = private["canaries"][0].clone();
    let swapped = json!({ "text": first["twins"][0], "twins": [first["text"], first["twins"][1], first["twins"][2], first["twins"][3]] });
    assert!(
        change("draw.json", &|private| private["canaries"][0] = swapped.clone())
            .contains("is not what was committed to")
    );
    assert!(
        change("method.json", &|private| private["method"] = json!("zlib")).contains("is not what was committed to")
    );
    assert!(change("nonce.json", &|private| private["nonce"] = json!("")).contains("is not what was committed to"));
    assert!(change("field.json", &|private| private["more"] = json!(1)).contains("is no private part"));
    assert!(refused(&run(&["open", "c/private.json", "--methods", "zlib"])).contains("--methods"));
    let other = "0".repeat(64);
    assert!(
        refused(&run(&["open", "c/private.json", "--commitment", &other])).contains("is not what was committed to")
    );
    assert!(refused(&run(&["open", "c/private.json", "--commitment", "x"])).contains("64 hexadecimal digits"));
}

#[test]
fn templates_and_methods_are_checked_before_anything_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| canary(arguments, directory.path());
    for (template, words) in [
        ("I saw a {word}\nI saw {one", "line 2: `{` at byte 6 has no `}`"),
        ("In {May|June}", "too few different texts (2)"),
        ("\n", "has no template"),
    ] {
        std::fs::write(directory.path().join("t.txt"), template).unwrap();
        let said = refused(&run(&["make", "--template", "t.txt", "--out", "c"]));
        assert!(said.contains(words), "{said}");
    }
    assert!(refused(&run(&["make", "--method", "ref", "--out", "c"])).contains("needs no other model"));
    let many = refused(&run(&["make", "--count", "10000", "--twins", "999", "--out", "c"]));
    assert!(many.contains("a test takes 588235 at most"), "{many}");
    assert!(refused(&run(&["make", "--method", "{", "--out", "c"])).contains("--method is no JSON object"));
    assert!(!directory.path().join("c").exists());

    std::fs::write(directory.path().join("t.txt"), "On {number} I saw {a|the} {word} {word}.\n").unwrap();
    let made = run(&[
        "make",
        "--template",
        "t.txt",
        "--count",
        "3",
        "--out",
        "c",
        "--method",
        r#"{"name": "min_k", "k": 0.3}"#,
    ]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert!(String::from_utf8_lossy(&made.stdout).contains("to be tested by min_k(k=0.3)"));
    let private = read(&directory.path().join("c/private.json"));
    assert!(private["canaries"][2]["text"].as_str().unwrap().starts_with("On "), "{private}");
}
