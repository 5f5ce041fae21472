//! The tokenizer: a byte-level BPE like Pythia's, trained on the background texts only.

use anyhow::{Result, anyhow};
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, Tokenizer};

/// Ends a text in training; never part of a scored text.
pub const END_OF_TEXT: &str = "<|endoftext|>";
/// Its id, the first of the vocabulary.
pub const END_OF_TEXT_ID: u32 = 0;
/// Size of the vocabulary, the 256 bytes included.
pub const SIZE: usize = 2048;

/// Learns the merges.
pub fn train(texts: &[String]) -> Result<Tokenizer> {
    let mut tokenizer = Tokenizer::new(BPE::default());
    let bytes = ByteLevel::new(false, true, true);
    tokenizer.with_pre_tokenizer(Some(bytes)).with_decoder(Some(bytes)).with_post_processor(Some(bytes));
    let trainer = BpeTrainer::builder()
        .vocab_size(SIZE)
        .min_frequency(2)
        .show_progress(false)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .special_tokens(vec![AddedToken::from(END_OF_TEXT, true)])
        .build();
    tokenizer
        .train(&mut TrainerWrapper::from(trainer), texts.iter().map(String::as_str))
        .map_err(|e| anyhow!("{e}"))?;
    Ok(tokenizer)
}
