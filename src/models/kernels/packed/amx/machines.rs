//! The machines by instruction set.

/// Evaluates an expression for the tile registers of an instruction set that has some.
macro_rules! by_machine {
    ($isa:expr, $machine:ident => $result:expr) => {
        match $isa {
            #[cfg(target_arch = "x86_64")]
            $crate::models::kernels::packed::Isa::Amx => {
                type $machine = $crate::models::kernels::packed::amx::Tiles;
                $result
            }
            _ => {
                type $machine = $crate::models::kernels::packed::amx::Emulated;
                $result
            }
        }
    };
}
pub(in crate::models::kernels::packed) use by_machine;
