//! The vector instructions that kernels run on: the best that the machine has, or fewer where a user or a test says so.
//!
//! An element-wise kernel is written once, as loops over slices, and compiled for every [`Level`]. No level changes a bit
//! (see [`super::math`]), which the tests prove for each kernel at each level that the machine has.

use crate::config::Simd as Wanted;
use std::sync::atomic::{AtomicU8, Ordering};

/// Vector instructions, from the fewest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every processor of the architecture has: SSE2 on x86-64, elsewhere what the compiler takes for granted.
    Scalar,
    /// AVX2.
    Avx2,
    /// AVX-512 with F, BW, DQ and VL.
    Avx512,
}

/// The machine has not the instructions that are asked for.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("this machine has {}, not {}", names(.machine), .wanted.name())]
pub struct Unavailable {
    pub wanted: Level,
    pub machine: Vec<Level>,
}

/// The index of the level in use; none of them until one is chosen.
static IN_USE: AtomicU8 = AtomicU8::new(u8::MAX);

impl Level {
    const ALL: [Self; 3] = [Self::Scalar, Self::Avx2, Self::Avx512];

    /// The levels of this machine, from the fewest instructions.
    pub fn available() -> Vec<Self> {
        Self::ALL.into_iter().filter(|level| level.is_available()).collect()
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
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => false,
        }
    }

    /// The best of this machine.
    fn best() -> Self {
        Self::ALL.into_iter().rfind(|level| level.is_available()).unwrap_or(Self::Scalar)
    }

    /// The level that this process uses: the one chosen last, else the best.
    pub fn in_use() -> Self {
        let index = usize::from(IN_USE.load(Ordering::Relaxed));
        Self::ALL.get(index).copied().unwrap_or_else(Self::best)
    }

    /// Uses this level from here on, in the whole process. Models keep the products that they were loaded with.
    ///
    /// # Errors
    /// [`Unavailable`] where the machine has not the instructions.
    pub fn force(self) -> Result<(), Unavailable> {
        if !self.is_available() {
            return Err(Unavailable { wanted: self, machine: Self::available() });
        }
        IN_USE.store(self as u8, Ordering::Relaxed);
        Ok(())
    }

    /// What the settings call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

fn names(levels: &[Level]) -> String {
    levels.iter().map(|level| level.name()).collect::<Vec<_>>().join(" and ")
}

/// Uses what the settings ask for.
///
/// # Errors
/// As [`Level::force`].
pub fn choose(wanted: Wanted) -> Result<(), Unavailable> {
    match wanted {
        Wanted::Auto => Level::best(),
        Wanted::Scalar => Level::Scalar,
        Wanted::Avx2 => Level::Avx2,
        Wanted::Avx512 => Level::Avx512,
    }
    .force()
}

/// An expression, compiled for the level in use. The functions that do the work in it must be `#[inline(always)]`: one that
/// stays a function of its own is compiled for the least machine. What it names is moved into it: a number behind a
/// reference might be what a loop overwrites, and would keep it from being vector code.
macro_rules! vectorised {
    ($kernel:expr) => {
        $crate::models::kernels::simd::run(
            #[inline(always)]
            move || $kernel,
        )
    };
}
pub(crate) use vectorised;

/// What [`vectorised`] becomes.
#[inline(always)]
pub(crate) fn run<T>(kernel: impl FnOnce() -> T) -> T {
    match Level::in_use() {
        // SAFETY: only a level that the machine has comes into use.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { avx512(kernel) },
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

/// What `result` is at each level of this machine, one caller at a time: the level is that of the whole process.
#[cfg(test)]
pub(crate) fn at_each_level<T>(result: impl Fn() -> T) -> Vec<(Level, T)> {
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let at = |level: Level| {
        level.force().unwrap();
        assert_eq!(Level::in_use(), level);
        (level, result())
    };
    let results = Level::available().into_iter().map(at).collect();
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
        for level in Level::ALL.into_iter().filter(|level| !Level::available().contains(level)) {
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
