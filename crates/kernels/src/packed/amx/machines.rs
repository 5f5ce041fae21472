//! The machines by instruction set.

/// Evaluates an expression for the tile registers of an instruction set that has some.
macro_rules! by_machine {
    ($isa:expr, $machine:ident => $result:expr) => {
        match $isa {
            #[cfg(target_arch = "x86_64")]
            $crate::packed::Isa::Amx => {
                type $machine = $crate::packed::amx::Tiles;
                $result
            }
            #[cfg(any(test, feature = "emulated-tiles"))]
            $crate::packed::Isa::AmxEmulated => {
                type $machine = $crate::packed::amx::Emulated;
                $result
            }
            // Only instruction sets with tiles come here.
            isa => unreachable!("{isa:?} has no tiles"),
        }
    };
}
pub(in crate::packed) use by_machine;
