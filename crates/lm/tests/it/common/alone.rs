//! Tests that need a process of their own: they measure its memory, change a setting of the whole process or read
//! counters that no other test may have touched.

use std::any::type_name;
use std::process::Command;

/// Set in a process that runs no other tests beside those that need to be alone. Whoever sets it by hand, as for a run under
/// an emulator, which would not emulate child processes, selects the tests accordingly.
const VARIABLE: &str = "PDR_AUDIT_TEST_ALONE";

/// Runs the body of a test in a child process that runs this test only. It must be called with a closure from the test
/// function itself: the name of the test is taken from the type of the closure.
pub fn alone<F: FnOnce()>(body: F) {
    if std::env::var_os(VARIABLE).is_some() {
        return body();
    }
    let path = type_name::<F>().trim_end_matches("::{{closure}}");
    let (_program, test) = path.split_once("::").expect("a test is in a module of the test program");
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--include-ignored"])
        .env(VARIABLE, "true")
        .output()
        .unwrap();
    let output = format!("{}{}", String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    // Printed, so that the harness shows or hides it as it would the output of this test.
    println!("{output}");
    assert!(child.status.success(), "`{test}` failed in its own process");
    assert!(output.contains("test result: ok. 1 passed"), "no test is called `{test}`");
}
