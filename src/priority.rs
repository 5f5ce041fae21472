//! The priority of threads: what decompresses, parses or tokenizes in bulk leaves the processor to what scores.

/// Lowers the priority of this thread, where threads have priorities of their own, so that it runs only when no other thread is ready.
/// Processes that it starts inherit that. A high nice value is not enough: on Linux, a thread of the forward pass that wakes up may wait
/// until a thread of any nice value ends its time slice, and the rest of the forward pass waits for that thread.
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use thread_priority::{NormalThreadSchedulePolicy, ThreadSchedulePolicy, thread_schedule_policy};

    #[test]
    fn a_thread_of_low_priority_has_the_policy_of_idle_ones() {
        let lowered = std::thread::spawn(|| {
            super::lower();
            thread_schedule_policy()
        });
        let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        assert_eq!(lowered.join().unwrap(), Ok(idle));
        assert_ne!(thread_schedule_policy(), Ok(idle));
    }
}
