//! Statistics as bytes, encrypted. Pure: a value that is not exactly what was written is an error, never statistics.
//!
//! The key of the encryption is made of the model's identity and the ids and is not written. The identity of a dataset's statistics has the
//! dataset's key in it, so that once the store has lost that key no one can find or read them.

use crate::engine::request::Stats;
use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher};
use mia::TokenStats;
use sha2::{Digest, Sha256, Sha512};
use std::sync::LazyLock;

/// Stamp that a file must hold. `build.rs` names the sources that numbers come from; others may give other bits, so with them it
/// begins anew.
pub(super) static STAMP: LazyLock<String> = LazyLock::new(|| format!("pdr-audit statistics 2 of {}", lm::NUMERICS));

/// Key of a value in a file.
pub(super) type RecordKey = [u8; 32];

/// Keys of the statistics of a sequence.
#[derive(Clone, Copy)]
pub(super) struct SequenceKeys {
    pub(super) record: RecordKey,
    cipher: [u8; 32],
}

const COUNT_BYTES: usize = size_of::<u64>();
const ENTRY_BYTES: usize = 4 * size_of::<f64>();
const CHECKSUM_BYTES: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Damage {
    #[error("a value has another length than it says")]
    Length,
    #[error("a value does not match its checksum")]
    Checksum,
    #[error("a value has another number of tokens than its sequence")]
    Tokens,
}

/// Returns the two halves of a SHA-512 over the stamp, the model's identity and the ids, each with its length before it.
pub(super) fn keys(identity: &str, ids: &[u32]) -> SequenceKeys {
    let mut hash = Sha512::new();
    for text in [&STAMP, identity] {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    hash.update((ids.len() as u64).to_le_bytes());
    for id in ids {
        hash.update(id.to_le_bytes());
    }
    let digest: [u8; 64] = hash.finalize().into();
    let (mut record, mut cipher) = ([0; 32], [0; 32]);
    record.copy_from_slice(&digest[..32]);
    cipher.copy_from_slice(&digest[32..]);
    SequenceKeys { record, cipher }
}

pub(super) fn encoded_len(entries: usize) -> usize {
    entries.saturating_mul(ENTRY_BYTES).saturating_add(COUNT_BYTES + CHECKSUM_BYTES)
}

/// The number of entries, the entries with `lp`, `mu`, `var` and `max_lp` each, all little endian, and the SHA-256 of the
/// record's key and all of that, so that a value under the key of another is damaged as well; encrypted.
pub(super) fn encode(keys: &SequenceKeys, stats: &[TokenStats]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(encoded_len(stats.len()));
    bytes.extend((stats.len() as u64).to_le_bytes());
    for TokenStats { lp, mu, var, max_lp } in stats {
        for number in [lp, mu, var, max_lp] {
            bytes.extend(number.to_le_bytes());
        }
    }
    bytes.extend(checksum(&keys.record, &bytes));
    apply_keystream(keys, &mut bytes);
    bytes
}

/// Encrypts or decrypts by ChaCha20. A cipher's key has one value, which is the same each time that it is computed, so the nonce can be
/// constant.
fn apply_keystream(keys: &SequenceKeys, bytes: &mut [u8]) {
    ChaCha20::new(&keys.cipher.into(), &[0; 12].into()).apply_keystream(bytes);
}

/// Returns the statistics of a sequence of `ids` ids, bit for bit as they were.
pub(super) fn decode(keys: &SequenceKeys, ids: usize, mut bytes: Vec<u8>) -> Result<Stats, Damage> {
    apply_keystream(keys, &mut bytes);
    let (body, sum) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(Damage::Length)?;
    let (count, entries) = body.split_first_chunk::<COUNT_BYTES>().ok_or(Damage::Length)?;
    let (entries, rest) = entries.as_chunks::<ENTRY_BYTES>();
    if !rest.is_empty() || u64::from_le_bytes(*count) != entries.len() as u64 {
        return Err(Damage::Length);
    }
    if *sum != checksum(&keys.record, body) {
        return Err(Damage::Checksum);
    }
    if entries.len() != ids.saturating_sub(1) {
        return Err(Damage::Tokens);
    }
    Ok(entries.iter().map(entry).collect())
}

fn entry(bytes: &[u8; ENTRY_BYTES]) -> TokenStats {
    let mut numbers = [0.0; 4];
    for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks().0) {
        *number = f64::from_le_bytes(*bytes);
    }
    let [lp, mu, var, max_lp] = numbers;
    TokenStats { lp, mu, var, max_lp }
}

fn checksum(key: &RecordKey, body: &[u8]) -> [u8; CHECKSUM_BYTES] {
    Sha256::new().chain_update(key).chain_update(body).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers whose bits a careless way through text or arithmetic would change.
    fn odd() -> Vec<TokenStats> {
        let signalling = f64::from_bits(0x7ff0_0000_0000_0001);
        let payload = f64::from_bits(0xfff8_dead_beef_0001);
        vec![
            TokenStats { lp: -0.0, mu: signalling, var: payload, max_lp: f64::NEG_INFINITY },
            TokenStats { lp: f64::MIN_POSITIVE / 4.0, mu: f64::MAX, var: 0.1 + 0.2, max_lp: f64::INFINITY },
        ]
    }

    fn bits(stats: &[TokenStats]) -> Vec<[u64; 4]> {
        stats.iter().map(|token| [token.lp, token.mu, token.var, token.max_lp].map(f64::to_bits)).collect()
    }

    #[test]
    fn every_bit_comes_back() {
        let keys = keys("m", &[1, 2, 3]);
        for stats in [Vec::new(), odd()] {
            let bytes = encode(&keys, &stats);
            assert_eq!(bytes.len(), encoded_len(stats.len()));
            assert_eq!(bits(&decode(&keys, stats.len() + 1, bytes).unwrap()), bits(&stats));
        }
    }

    #[test]
    fn any_flipped_bit_and_any_other_length_is_damage() {
        let right = keys("m", &[1, 2, 3]);
        let good = encode(&right, &odd());
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                assert!(decode(&right, 3, bad).is_err(), "bit {bit} of byte {at}");
            }
            assert!(decode(&right, 3, good[..at].to_vec()).is_err(), "cut to {at}");
        }
        assert!(decode(&right, 3, [&*good, &[0; 32]].concat()).is_err());
        assert_eq!(decode(&right, 4, good.clone()), Err(Damage::Tokens));
        assert!(decode(&keys("n", &[1, 2, 3]), 3, good.clone()).is_err());
        let moved = SequenceKeys { record: keys("n", &[1, 2, 3]).record, ..right };
        assert_eq!(decode(&moved, 3, good), Err(Damage::Checksum));
    }

    #[test]
    fn keys_differ_by_identity_and_ids() {
        let all = [keys("m", &[1, 2]), keys("n", &[1, 2]), keys("m", &[2, 1]), keys("m", &[1, 2, 0]), keys("m", &[])];
        let all = all.map(|keys| [keys.record, keys.cipher]).concat();
        for (at, one) in all.iter().enumerate() {
            assert!(!all[..at].contains(one), "key {at}");
        }
    }

    #[test]
    fn a_value_shows_nothing_without_the_keys() {
        let bytes = encode(&keys("m", &[1, 2, 3]), &odd());
        let number = f64::MAX.to_le_bytes();
        assert!(!bytes.windows(8).any(|window| window == number));
    }
}
