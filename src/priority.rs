//! The priority of threads: what decompresses, parses or tokenizes in bulk leaves the processor to what scores.

/// Lowers the priority of this thread, where threads have priorities of their own: it runs when no other thread would. A process that it
/// starts inherits that. A high nice value is not enough: Linux lets a thread of any nice value end its slice of some milliseconds
/// when one of the threads that multiply wakes up, and the others wait for that one.
pub fn lower() {
    #[cfg(target_os = "linux")]
    {
        use thread_priority::{
            NormalThreadSchedulePolicy::Idle, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
            thread_native_id,
        };
        let policy = ThreadSchedulePolicy::Normal(Idle);
        if let Err(error) = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy) {
            tracing::debug!(?error, "a thread runs at the usual priority");
        }
    }
}
