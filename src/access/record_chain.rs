//! The chain of the access record: each line has the SHA-256 of the line before it. Pure.
//!
//! A line that is changed, removed or put elsewhere breaks the chain at the line after it. Whoever can write the file can make a new chain
//! from some line to its end; the digest of the last line, kept elsewhere, shows that.

use mia::texts::hexadecimal;
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// Digest before the first line of a record.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Returns the line of an entry, which is a JSON object with fields, without the line break. `previous` is the digest of the line before it,
/// and `after_cut` is true if that line is not whole.
#[must_use]
pub fn chained_line(previous: &str, after_cut: bool, entry: &str) -> String {
    let cut = if after_cut { "\"after_cut\":true," } else { "" };
    format!("{{\"previous\":\"{previous}\",{cut}{}", entry.strip_prefix('{').unwrap_or(entry))
}

/// Returns the digest of a line without its line break, in hexadecimal digits.
#[must_use]
pub fn line_digest(line: &[u8]) -> String {
    hexadecimal(&Sha256::digest(line))
}

/// Returns true if a line, without its line break, is an entry; a crash may have cut one.
#[must_use]
pub fn is_entry(line: &[u8]) -> bool {
    serde_json::from_slice::<ChainLink>(line).is_ok()
}

/// The fields of a line that chain it.
#[derive(Deserialize)]
struct ChainLink {
    previous: Option<String>,
    #[serde(default)]
    after_cut: bool,
}

/// A check of lines that are added in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainCheck {
    /// Number of lines that hold.
    pub lines: u64,
    /// Number of lines among them from before there was a chain, all of them at the beginning.
    pub unchained: u64,
    /// Number of lines among them that a crash cut.
    pub cut: u64,
    /// Digest that the first line has of the one before it; `None` if the first line is not chained.
    pub first: Option<String>,
    /// Digest of the last line.
    pub last: Option<String>,
    /// True if the last line is no entry.
    pub ends_cut: bool,
}

/// Why a line does not belong behind those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrokenChain {
    #[error("its `previous` is not the digest of the line before it: a line was changed, removed or added there")]
    Previous,
    #[error("it has no `previous`, while lines before it have")]
    Unchained,
    #[error("the line before it is no entry, and the service did not note that a crash had cut it")]
    NoEntry,
    #[error("it says that the line before it is cut, and that one is whole")]
    NotCut,
}

impl ChainCheck {
    /// Adds the next line, without its line break.
    ///
    /// # Errors
    /// [`BrokenChain`] if it does not continue the chain.
    pub fn add(&mut self, line: &[u8]) -> Result<(), BrokenChain> {
        let link = serde_json::from_slice::<ChainLink>(line).ok();
        let (previous, after_cut) = match &link {
            Some(link) => (link.previous.as_ref(), link.after_cut),
            None => (None, false),
        };
        match (link.is_some(), self.ends_cut) {
            (_, true) if !after_cut => return Err(BrokenChain::NoEntry),
            (true, false) if after_cut && self.lines > 0 => return Err(BrokenChain::NotCut),
            _ => {}
        }
        match (previous, &self.last) {
            (Some(previous), Some(last)) if previous != last => return Err(BrokenChain::Previous),
            (None, _) if link.is_some() && self.lines > self.unchained + self.cut => {
                return Err(BrokenChain::Unchained);
            }
            _ => {}
        }
        if self.lines == 0 {
            self.first = previous.cloned();
        }
        self.lines += 1;
        self.unchained += u64::from(link.is_some() && previous.is_none());
        self.cut += u64::from(link.is_none());
        self.ends_cut = link.is_none();
        self.last = Some(line_digest(line));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &[String]) -> Result<ChainCheck, (usize, BrokenChain)> {
        let mut check = ChainCheck::default();
        for (index, line) in lines.iter().enumerate() {
            check.add(line.as_bytes()).map_err(|fault| (index, fault))?;
        }
        Ok(check)
    }

    fn record(count: usize) -> Vec<String> {
        let mut previous = GENESIS.to_owned();
        let line = |number| {
            let line = chained_line(&previous, false, &format!("{{\"number\":{number}}}"));
            previous = line_digest(line.as_bytes());
            line
        };
        (0..count).map(line).collect()
    }

    /// The digest of FIPS 180-2, appendix B.1.
    #[test]
    fn digests_are_those_of_others() {
        assert_eq!(line_digest(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn whole_records_and_parts_of_them_hold() {
        let lines = record(9);
        let whole = check(&lines).unwrap();
        assert_eq!((whole.lines, whole.first.as_deref()), (9, Some(GENESIS)));
        let rest = check(&lines[4..]).unwrap();
        assert_eq!((rest.lines, rest.first), (5, Some(line_digest(lines[3].as_bytes()))));
        assert_eq!(rest.last, whole.last);
        assert_eq!(check(&[]), Ok(ChainCheck::default()));
    }

    #[test]
    fn every_change_is_found_at_the_line_behind_it() {
        let lines = record(9);
        for index in 0..8 {
            let mut changed = lines.clone();
            changed[index] = changed[index].replace("number", "numbel");
            assert_eq!(check(&changed), Err((index + 1, BrokenChain::Previous)), "line {index}");
            let mut shorter = lines.clone();
            shorter.remove(index);
            assert_eq!(check(&shorter).is_err(), index > 0, "the first lines may be in another file: {index}");
            let mut swapped = lines.clone();
            swapped.swap(index, index + 1);
            assert!(check(&swapped).is_err(), "line {index}");
            let mut stripped = lines.clone();
            stripped[index + 1] = "{\"number\":1}".to_owned();
            assert_eq!(check(&stripped), Err((index + 1, BrokenChain::Unchained)));
            let mut broken = lines.clone();
            broken[index].pop();
            assert_eq!(check(&broken), Err((index + 1, BrokenChain::NoEntry)));
        }
    }

    #[test]
    fn lines_of_before_and_cut_lines_are_counted() {
        let old = ["{\"number\":1}", "{\"number\":2}"].map(str::to_owned);
        let cut = chained_line(&line_digest(old[1].as_bytes()), false, "{\"number\":3}")[..70].to_owned();
        let next = chained_line(&line_digest(cut.as_bytes()), true, "{\"number\":4}");
        let lines = [old[0].clone(), old[1].clone(), cut.clone(), next.clone()];
        let checked = check(&lines).unwrap();
        assert_eq!(
            (checked.lines, checked.unchained, checked.cut, checked.ends_cut, checked.first),
            (4, 2, 1, false, None)
        );
        assert!(check(&lines[..3]).unwrap().ends_cut);
        let claimed = chained_line(&line_digest(old[1].as_bytes()), true, "{\"number\":3}");
        assert_eq!(check(&[old[1].clone(), claimed]), Err((1, BrokenChain::NotCut)));
    }
}
