//! Meaning of a GPU error for the service, by the name of its code. candle wraps the codes of the driver and of
//! cuBLAS in many ways, but every message has the name.

/// Meaning of a GPU error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuFault {
    /// The context is broken: every later call fails as well.
    Lost,
    /// A smaller batch may fit.
    OutOfMemory,
    /// This call failed, and others may succeed.
    Failed,
}

/// Codes after which a context is of no use: NVIDIA's reference calls the process "in an inconsistent state", or there
/// is no device any more.
const LOST: [&str; 24] = [
    "CUDA_ERROR_NOT_INITIALIZED",
    "CUDA_ERROR_EXTERNAL_DEVICE",
    "CUDA_ERROR_DEINITIALIZED",
    "CUDA_ERROR_DEVICE_UNAVAILABLE",
    "CUDA_ERROR_NO_DEVICE",
    "CUDA_ERROR_INVALID_DEVICE",
    "CUDA_ERROR_INVALID_CONTEXT",
    "CUDA_ERROR_ECC_UNCORRECTABLE",
    "CUDA_ERROR_NVLINK_UNCORRECTABLE",
    "CUDA_ERROR_CONTAINED",
    "CUDA_ERROR_ILLEGAL_ADDRESS",
    "CUDA_ERROR_LAUNCH_TIMEOUT",
    "CUDA_ERROR_CONTEXT_IS_DESTROYED",
    "CUDA_ERROR_ASSERT",
    "CUDA_ERROR_HARDWARE_STACK_ERROR",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION",
    "CUDA_ERROR_MISALIGNED_ADDRESS",
    "CUDA_ERROR_INVALID_ADDRESS_SPACE",
    "CUDA_ERROR_INVALID_PC",
    "CUDA_ERROR_LAUNCH_FAILED",
    "CUDA_ERROR_TENSOR_MEMORY_LEAK",
    "CUDA_ERROR_MPS_RPC_FAILURE",
    "CUDA_ERROR_MPS_CLIENT_TERMINATED",
    "CUDA_ERROR_UNKNOWN",
];

/// NVIDIA's reference names a lack of memory among the causes of a cuBLAS that is not initialised.
const NO_MEMORY: [&str; 3] =
    ["CUDA_ERROR_OUT_OF_MEMORY", "CUBLAS_STATUS_ALLOC_FAILED", "CUBLAS_STATUS_NOT_INITIALIZED"];

/// Codes for a program that this device or driver cannot run, now or later.
#[cfg(any(feature = "cuda", test))]
const UNUSABLE_PROGRAM: [&str; 9] = [
    "CUDA_ERROR_INVALID_IMAGE",
    "CUDA_ERROR_NO_BINARY_FOR_GPU",
    "CUDA_ERROR_INVALID_PTX",
    "CUDA_ERROR_JIT_COMPILER_NOT_FOUND",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    "CUDA_ERROR_JIT_COMPILATION_DISABLED",
    "CUDA_ERROR_INVALID_SOURCE",
    "CUDA_ERROR_NOT_FOUND",
    "CUDA_ERROR_INVALID_VALUE",
];

impl GpuFault {
    /// The meaning of a message; `None` if it names no code of a GPU. Of several codes, the gravest counts.
    pub fn in_message(message: &str) -> Option<Self> {
        let mut codes = codes(message).peekable();
        codes.peek()?;
        Some(codes.map(Self::of_code).fold(Self::Failed, |gravest, fault| match (gravest, fault) {
            (Self::Lost, _) | (_, Self::Lost) => Self::Lost,
            (Self::OutOfMemory, _) | (_, Self::OutOfMemory) => Self::OutOfMemory,
            _ => Self::Failed,
        }))
    }

    fn of_code(code: &str) -> Self {
        match () {
            () if LOST.contains(&code) => Self::Lost,
            () if NO_MEMORY.contains(&code) => Self::OutOfMemory,
            () => Self::Failed,
        }
    }
}

/// Returns true if a message says that a program will never run on the device.
#[cfg(any(feature = "cuda", test))]
pub fn is_unusable_program(message: &str) -> bool {
    codes(message).any(|code| UNUSABLE_PROGRAM.contains(&code))
}

/// The names of codes in a message.
fn codes(message: &str) -> impl Iterator<Item = &str> {
    let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let words = message.split(move |c| !is_name(c));
    words.filter(|word| ["CUDA_ERROR_", "CUBLAS_STATUS_"].iter().any(|prefix| word.starts_with(prefix)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_meaning() {
        let table = [
            // Numbers 700, 702, 709, 710, 714 to 719, 214 and 46 of the driver, among others.
            (&LOST[..], GpuFault::Lost),
            (&NO_MEMORY, GpuFault::OutOfMemory),
            (&UNUSABLE_PROGRAM, GpuFault::Failed),
            (
                &[
                    "CUDA_ERROR_NOT_SUPPORTED",
                    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
                    "CUDA_ERROR_INVALID_HANDLE",
                    "CUBLAS_STATUS_NOT_SUPPORTED",
                    "CUBLAS_STATUS_INVALID_VALUE",
                    "CUBLAS_STATUS_ARCH_MISMATCH",
                    "CUBLAS_STATUS_EXECUTION_FAILED",
                    "CUBLAS_STATUS_INTERNAL_ERROR",
                ],
                GpuFault::Failed,
            ),
        ];
        for (codes, fault) in table {
            for code in codes {
                // As cudarc writes them, alone and within the words of candle.
                assert_eq!(GpuFault::in_message(code), Some(fault), "{code}");
                let message = format!("DriverError({code}, \"what it says\") when loading affine");
                assert_eq!(GpuFault::in_message(&message), Some(fault), "{code}");
            }
        }
    }

    #[test]
    fn the_gravest_of_several_codes_counts() {
        let both = |a: &str, b: &str| GpuFault::in_message(&format!("{a} after {b}"));
        assert_eq!(both("CUBLAS_STATUS_EXECUTION_FAILED", "CUDA_ERROR_LAUNCH_FAILED"), Some(GpuFault::Lost));
        assert_eq!(both("CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_INVALID_VALUE"), Some(GpuFault::OutOfMemory));
        assert_eq!(both("CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_ILLEGAL_ADDRESS"), Some(GpuFault::Lost));
    }

    #[test]
    fn what_names_no_code_is_no_fault_of_a_gpu() {
        let messages = [
            "unexpected dtype, expected: F32, got: U32",
            "matmul is only supported for contiguous tensors",
            "missing kernel 'affine'",
            "shape mismatch in matmul",
            "CUDA_ERRORS",
            "",
        ];
        for message in messages {
            assert_eq!(GpuFault::in_message(message), None, "{message}");
        }
    }

    #[test]
    fn a_program_that_never_runs_is_told_from_a_passing_failure() {
        assert!(is_unusable_program("DriverError(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, \"..\")"));
        for passing in ["CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_OPERATING_SYSTEM", ""] {
            assert!(!is_unusable_program(passing), "{passing}");
        }
    }
}
