//! The priority of threads: what decompresses, parses or tokenizes in bulk leaves the processor to what scores.

/// Nice value of threads with a low priority. Linux shares a processor out by weights, and there may be many such threads: sixteen of them
/// have less than a quarter of the weight of one thread of the usual priority.
#[cfg(target_os = "linux")]
const LOW: i32 = 19;

/// Lowers the priority of this thread, where threads have priorities of their own.
pub fn lower() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(LOW) {
        tracing::debug!(%error, "a thread runs at the usual priority");
    }
}
