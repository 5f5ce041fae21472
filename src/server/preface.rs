//! Detection of HTTP/1 or HTTP/2 from the first bytes of a connection.

/// Preface of HTTP/2 (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Progress in reading the preface of HTTP/2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefaceProgress {
    read: usize,
    decided: bool,
}

impl PrefaceProgress {
    /// Notes bytes in the order in which they come.
    pub fn note(&mut self, bytes: &[u8]) {
        if self.decided {
            return;
        }
        let expected = &PREFACE[self.read..];
        let compared = bytes.len().min(expected.len());
        self.decided = bytes[..compared] != expected[..compared] || compared == expected.len();
        self.read += compared;
    }

    /// Returns true if the version is known.
    #[must_use]
    pub fn is_decided(self) -> bool {
        self.decided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(parts: &[&[u8]]) -> bool {
        let mut progress = PrefaceProgress::default();
        parts.iter().for_each(|part| progress.note(part));
        progress.is_decided()
    }

    #[test]
    fn a_byte_that_differs_or_the_whole_preface_decides() {
        assert!(!decided(&[]) && !decided(&[b"P"]) && !decided(&[b"PRI", b" * HTTP/2.0\r\n"]));
        assert!(decided(&[b"G"]) && decided(&[b"P", b"OST /"]) && decided(&[PREFACE]));
        assert!(decided(&[&PREFACE[..23], &PREFACE[23..], b"more"]) && decided(&[b"PRI * HTTP/1"]));
    }
}
