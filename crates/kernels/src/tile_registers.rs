//! Availability of the tile registers of AMX to this process.

use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::sync::OnceLock;

/// Returns true if the processor has AMX-BF16, with the vector instructions that conversion and results take, and the system
/// lets this process use tile registers. Linux gives them to a process that asks for them, to all of its threads.
pub fn are_available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| {
        let permitted = has_instructions().then(ask_for_tiles);
        if let Some(Err(why)) = &permitted {
            tracing::warn!(%why, "the processor has AMX, but the system does not permit its use; running without");
        }
        matches!(permitted, Some(Ok(())))
    })
}

fn has_instructions() -> bool {
    // `is_x86_feature_detected!("amx-bf16")` is not stable. Leaf 7: bits 22 and 24 of edx.
    const AMX: u32 = 1 << 22 | 1 << 24;
    let has_tiles = __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & AMX == AMX;
    has_tiles
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512bf16")
}

#[cfg(target_os = "linux")]
fn ask_for_tiles() -> std::io::Result<()> {
    const ARCH_REQ_XCOMP_PERM: libc::c_int = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_ulong = 18;
    // SAFETY: the call changes nothing but what the process may use; a kernel that lacks it returns an error.
    match unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

#[cfg(not(target_os = "linux"))]
fn ask_for_tiles() -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}
