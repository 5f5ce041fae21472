//! How large the methods of a request may be.

/// The longest label, in Unicode code points.
pub const MAX_LABEL_CHARS: usize = 200;

/// The most methods of a request, sweeps and presets expanded.
pub const MAX_METHODS: usize = 256;

/// The most texts of one prefix.
pub const MAX_PREFIX_TEXTS: usize = 256;

/// The most bytes of all prefixes of a request: the answer repeats them with every method.
pub const MAX_PREFIX_BYTES: usize = 16 << 20;

/// The most neighbours of a text, whether they come with it or are generated.
pub const MAX_NEIGHBORS: usize = 200;

/// How much of an unknown name a fault repeats, in Unicode code points.
pub const MAX_QUOTED_CHARS: usize = 60;
