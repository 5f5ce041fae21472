//! The place of a request in a distributed trace, as the header `traceparent` of W3C Trace Context has it
//! (<https://www.w3.org/TR/trace-context/>).

use axum::http::HeaderMap;
use std::fmt;
use uuid::Uuid;

/// The header that carries it. The standard has it in requests; in answers it says which span of the trace was this service's.
pub const TRACEPARENT: &str = "traceparent";

/// The trace that a request belongs to, and the part of it that this service does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    trace: u128,
    span: u64,
    flags: u8,
}

impl TraceContext {
    /// A new span of the trace that the request names; of a new trace where it names none, or not as the standard says.
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let mut lines = headers.get_all(TRACEPARENT).into_iter();
        let named = lines.next().and_then(|line| parse(line.to_str().ok()?)).filter(|_| lines.next().is_none());
        // Nobody has asked to record a trace that begins here.
        let (trace, flags) = named.unwrap_or_else(|| (Uuid::new_v4().as_u128(), 0));
        Self { trace, span: Uuid::new_v4().as_u64_pair().0, flags }
    }

    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace)
    }

    pub fn span_id(&self) -> String {
        format!("{:016x}", self.span)
    }
}

/// The value of the header, of version 00.
impl fmt::Display for TraceContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, self.flags)
    }
}

/// The trace and the flags of a header: of later versions what version 00 defines.
fn parse(header: &str) -> Option<(u128, u8)> {
    let mut fields = header.split('-');
    let mut field = |digits: usize| {
        let field = fields.next().filter(|field| field.len() == digits)?;
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        field.bytes().all(is_digit).then_some(u128::from_str_radix(field, 16).ok()?)
    };
    let (version, trace, parent, flags) = (field(2)?, field(32)?, field(16)?, field(2)?);
    let is_known = version != 0xff && (version != 0 || fields.next().is_none());
    // Of the flags only the first bit, which says that the caller records the trace, is passed on.
    (is_known && trace != 0 && parent != 0).then_some((trace, u8::from(flags & 1 == 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn context(lines: &[&'static str]) -> TraceContext {
        let name = HeaderName::from_static(TRACEPARENT);
        TraceContext::from_headers(&lines.iter().map(|line| (name.clone(), HeaderValue::from_static(line))).collect())
    }

    #[test]
    fn a_request_goes_on_with_the_trace_of_its_caller() {
        // The example of the standard, and one of a later version with more fields.
        for header in [
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-comes",
        ] {
            let context = context(&[header]);
            assert_eq!(context.trace_id(), "0af7651916cd43dd8448eb211c80319c");
            assert_ne!(context.span_id(), "b7ad6b7169203331");
            let sent = context.to_string();
            assert_eq!(sent, format!("00-{}-{}-01", context.trace_id(), context.span_id()));
        }
        let context = context(&["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-fe"]);
        assert!(context.to_string().ends_with("-00"));
    }

    #[test]
    fn what_is_not_as_the_standard_says_begins_a_new_trace() {
        for header in [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            let (one, other) = (context(&[header]), context(&[header]));
            assert!(one.trace_id() != other.trace_id() && !header.contains(&one.trace_id()), "{header}");
        }
        let twice = ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"; 2];
        assert_ne!(context(&twice).trace_id(), "0af7651916cd43dd8448eb211c80319c");
    }
}
