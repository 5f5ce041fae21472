//! The vector instructions that kernels use: the best that the machine has, or fewer if a user or a test requests so.
//!
//! An element-wise kernel is written once, as loops over slices, and compiled for every [`Level`]. The level does not
//! change a bit (see [`super::math`]), which the tests prove for each kernel at each level that the machine has.

use std::sync::atomic::{AtomicU8, Ordering};
use strum::{FromRepr, IntoStaticStr, VariantArray};

/// Levels of vector instructions, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, FromRepr, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
#[repr(u8)]
pub enum Level {
    /// Instructions of every processor of the architecture: SSE2 on x86-64, otherwise the compiler's baseline.
    Scalar,
    Avx2,
    /// AVX-512 with F, BW, DQ and VL.
    Avx512,
    /// The same, and tile registers for packed products.
    Amx,
}

/// The machine does not have the requested instructions.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("this machine has {}, not {}", names(.machine), .wanted.name())]
pub struct Unavailable {
    pub wanted: Level,
    pub machine: Vec<Level>,
}

/// Names a level to use instead of the best one.
pub const VARIABLE: &str = "PDR_AUDIT_SIMD";

/// The level in use as a number, which is invalid until one is chosen.
static IN_USE: AtomicU8 = AtomicU8::new(u8::MAX);

impl Level {
    /// The levels of this machine, in ascending order.
    pub fn available() -> Vec<Self> {
        Self::VARIANTS.iter().copied().filter(|level| level.is_available()).collect()
    }

    fn is_available(self) -> bool {
        match self {
            Self::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Amx => Self::Avx512.is_available() && super::tile_registers::are_available(),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 | Self::Amx => false,
        }
    }

    fn best() -> Self {
        Self::VARIANTS.iter().copied().rfind(|level| level.is_available()).unwrap_or(Self::Scalar)
    }

    /// The level that this process uses: the last one chosen, otherwise the best.
    pub fn in_use() -> Self {
        Self::from_repr(IN_USE.load(Ordering::Relaxed)).unwrap_or_else(Self::best)
    }

    /// Uses this level from now on, in the whole process. Loaded models keep their kind of products.
    ///
    /// # Errors
    /// [`Unavailable`] if the machine does not have the instructions.
    pub fn force(self) -> Result<(), Unavailable> {
        if !self.is_available() {
            return Err(Unavailable { wanted: self, machine: Self::available() });
        }
        IN_USE.store(self as u8, Ordering::Relaxed);
        Ok(())
    }

    /// The name in messages and in [`VARIABLE`].
    pub fn name(self) -> &'static str {
        self.into()
    }
}

fn names(levels: &[Level]) -> String {
    levels.iter().map(|level| level.name()).collect::<Vec<_>>().join(" and ")
}

/// Uses the level that the environment variable [`VARIABLE`] names, for tests; without it the best one stays in use.
///
/// # Errors
/// If no level has the name, or the machine does not have it.
pub fn force_from_environment() -> Result<(), String> {
    let Some(name) = std::env::var_os(VARIABLE) else { return Ok(()) };
    let wanted = Level::VARIANTS.iter().copied().find(|level| *level.name() == *name);
    let wanted = wanted.ok_or_else(|| {
        format!(
            "{VARIABLE} is {name:?}, not one of {}",
            Level::VARIANTS.iter().map(|level| level.name()).collect::<Vec<_>>().join(", ")
        )
    })?;
    wanted.force().map_err(|unavailable| unavailable.to_string())
}

/// Compiles an expression for the level in use. The functions that do its work must be `#[inline(always)]`: one that is
/// not inlined is compiled for the baseline. Captured variables are moved into it: a number behind a reference might
/// alias what a loop overwrites, which would prevent vectorisation.
#[macro_export]
macro_rules! vectorised {
    ($kernel:expr) => {
        $crate::simd::run(
            #[inline(always)]
            move || $kernel,
        )
    };
}
pub use vectorised;

/// The expansion of [`vectorised!`].
#[inline(always)]
pub fn run<T>(kernel: impl FnOnce() -> T) -> T {
    match Level::in_use() {
        // SAFETY: a level is used only if the machine has it.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 | Level::Amx => unsafe { avx512(kernel) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { avx2(kernel) },
        _ => kernel(),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn avx512<T>(kernel: impl FnOnce() -> T) -> T {
    kernel()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2<T>(kernel: impl FnOnce() -> T) -> T {
    kernel()
}

/// Evaluates `result` at each level of this machine, one caller at a time, since the level applies to the whole
/// process: for tests.
///
/// # Panics
/// If a level that this machine has cannot be chosen.
pub fn at_each_level<T>(result: impl Fn() -> T) -> Vec<(Level, T)> {
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let measure = |level: Level| {
        level.force().unwrap();
        assert_eq!(Level::in_use(), level);
        (level, result())
    };
    let results = Level::available().into_iter().map(measure).collect();
    Level::best().force().unwrap();
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_is_not_there_is_refused_by_its_name() {
        let refused = Unavailable { wanted: Level::Avx512, machine: vec![Level::Scalar, Level::Avx2] };
        assert_eq!(refused.to_string(), "this machine has scalar and avx2, not avx512");
        for level in Level::VARIANTS.iter().copied().filter(|level| !Level::available().contains(level)) {
            assert_eq!(level.force(), Err(Unavailable { wanted: level, machine: Level::available() }));
        }
    }

    #[test]
    fn the_levels_are_tried_from_the_fewest_instructions_to_the_best() {
        let levels: Vec<Level> = at_each_level(Level::in_use).into_iter().map(|(level, _)| level).collect();
        assert_eq!(levels.first(), Some(&Level::Scalar));
        assert_eq!(levels.last(), Some(&Level::best()));
    }
}
