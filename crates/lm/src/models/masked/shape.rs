//! The sizes of a masked model, and the memory of its forward pass.

/// The maximum number of elements in the largest tensor of a forward pass, unless a single sequence needs more.
pub(super) const MOST_ELEMENTS: usize = 1 << 26;

/// The sizes of a masked model that determine its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncoderShape {
    pub vocab_size: usize,
    pub heads: usize,
    /// The maximum number of positions.
    pub context: usize,
    /// The smallest output width of any projection.
    pub narrowest: usize,
}

impl EncoderShape {
    /// Bytes that a batch of `tokens` tokens takes in addition to the weights, whatever the lengths of its sequences.
    pub fn activation_bytes(self, tokens: usize) -> u64 {
        let longest = tokens.min(self.context);
        let all = tokens.saturating_mul(self.widest(longest));
        // A few of the largest tensors at a time, in f32.
        all.min(MOST_ELEMENTS.max(self.largest(longest))) as u64 * 4 * 4
    }

    /// The number of sequences of a length that run at once.
    pub fn copies_at_a_time(self, length: usize) -> usize {
        (MOST_ELEMENTS / self.largest(length).max(1)).max(1)
    }

    /// Elements of the largest tensor for one sequence.
    fn largest(self, length: usize) -> usize {
        length.saturating_mul(self.widest(length))
    }

    /// The same per token: the logits, or the attention scores.
    fn widest(self, length: usize) -> usize {
        self.vocab_size.max(self.heads.saturating_mul(length))
    }
}
