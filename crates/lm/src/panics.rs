//! Messages of panics.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[must_use]
pub fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// Calls a library that panics on some of what others have written, where it should return an error; returns its result or
/// the message of its panic. Nothing that the call was writing to may be used after a panic.
pub fn caught<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| panic_message(&*panic).to_owned())
}

/// Calls such a library on a thread with room for its recursion over what others have written, where it has no bound of its own: a
/// stack that overflows ends the process, and no error and no panic.
pub fn caught_on_large_stack<T: Send>(call: impl FnOnce() -> T + Send) -> Result<T, String> {
    // Reserved, and not in memory before it is used.
    const STACK: usize = 256 << 20;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, call);
        let thread = thread.map_err(|error| format!("there is no thread for it: {error}"))?;
        thread.join().map_err(|panic| panic_message(&*panic).to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::panic_message;
    use std::panic::catch_unwind;

    #[test]
    fn whatever_a_panic_carries_has_a_message() {
        let message = |work: fn()| panic_message(&*catch_unwind(work).unwrap_err()).to_owned();
        assert_eq!(message(|| panic!("a text")), "a text");
        assert_eq!(message(|| panic!("number {}", std::hint::black_box(7))), "number 7");
        assert_eq!(message(|| std::panic::panic_any(7)), "no message");
    }
}
