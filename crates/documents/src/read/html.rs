//! The text of HTML and XHTML: a stream of tokens, without a tree.
//!
//! White space is as a browser shows it: runs are one space but in `<pre>`, `<br>` is a line end and a block element ends a
//! paragraph, which is a blank line.

use crate::error::DocumentFault;
use html5gum::{Emitter, Error, IoReader, State, Tokenizer};
use std::io::Read;

/// Bytes of text that are given at once.
const CHUNK: usize = 32 << 10;

/// Longest name of an element that matters here; longer names are cut off.
const NAME: usize = 16;

/// Elements whose content is no text.
const SKIPPED: [&[u8]; 9] =
    [b"script", b"style", b"template", b"title", b"textarea", b"iframe", b"noembed", b"noframes", b"select"];

/// Elements that may be in a head; any other one, and text, ends it.
const IN_HEAD: [&[u8]; 11] = [
    b"head",
    b"base",
    b"basefont",
    b"bgsound",
    b"link",
    b"meta",
    b"noscript",
    b"script",
    b"style",
    b"template",
    b"title",
];

/// Elements that end a paragraph where they begin and where they end.
const BLOCKS: [&[u8]; 46] = [
    b"address",
    b"article",
    b"aside",
    b"blockquote",
    b"body",
    b"caption",
    b"center",
    b"dd",
    b"details",
    b"dialog",
    b"dir",
    b"div",
    b"dl",
    b"dt",
    b"fieldset",
    b"figcaption",
    b"figure",
    b"footer",
    b"form",
    b"h1",
    b"h2",
    b"h3",
    b"h4",
    b"h5",
    b"h6",
    b"header",
    b"hgroup",
    b"hr",
    b"html",
    b"legend",
    b"li",
    b"main",
    b"menu",
    b"nav",
    b"ol",
    b"p",
    b"pre",
    b"search",
    b"section",
    b"summary",
    b"table",
    b"tbody",
    b"tfoot",
    b"thead",
    b"tr",
    b"ul",
];

/// The text of a page in chunks. `is_xml` tells that empty tags close their elements.
pub struct HtmlText<R: Read> {
    tokenizer: Tokenizer<IoReader<R>, TextEmitter>,
    /// The beginning of a character whose end was not read yet.
    pending: Vec<u8>,
}

impl<R: Read> HtmlText<R> {
    pub fn new(reader: R, is_xml: bool) -> Self {
        let emitter = TextEmitter { is_xml, ..TextEmitter::default() };
        Self { tokenizer: Tokenizer::new_with_emitter(IoReader::new(reader), emitter), pending: Vec::new() }
    }
}

impl<R: Read> Iterator for HtmlText<R> {
    type Item = Result<String, DocumentFault>;

    fn next(&mut self) -> Option<Self::Item> {
        let Some(chunk) = self.tokenizer.next() else {
            let is_cut_off = !std::mem::take(&mut self.pending).is_empty();
            return is_cut_off.then_some(Err(DocumentFault::Changed));
        };
        let mut bytes = std::mem::take(&mut self.pending);
        match chunk {
            Ok(chunk) => bytes.extend(chunk),
            Err(error) => return Some(Err(error.into())),
        }
        let valid = match std::str::from_utf8(&bytes) {
            Ok(text) => text.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            // The bytes were checked before.
            Err(_) => return Some(Err(DocumentFault::Changed)),
        };
        self.pending = bytes.split_off(valid);
        Some(String::from_utf8(bytes).map_err(|_| DocumentFault::Changed))
    }
}

/// White space that is owed before the next text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    #[default]
    None,
    Space,
    LineEnd,
    Paragraph,
}

impl Gap {
    fn bytes(self, line_ends: usize) -> Vec<u8> {
        match self {
            Self::None => Vec::new(),
            Self::Space => b" ".to_vec(),
            Self::LineEnd => vec![b'\n'; line_ends.clamp(1, 2)],
            Self::Paragraph => b"\n\n".to_vec(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TagKind {
    #[default]
    Start,
    End,
}

/// Keeps the text and the place in the page, and nothing of attributes and comments, however long they are.
#[derive(Default)]
struct TextEmitter {
    is_xml: bool,
    text: Vec<u8>,
    has_text: bool,
    gap: Gap,
    /// Number of `<br>` since the last text.
    line_ends: usize,
    tag: TagKind,
    name: Vec<u8>,
    is_self_closing: bool,
    /// The start tag that the current raw text ends with.
    last_start_tag: Vec<u8>,
    is_in_head: bool,
    /// The element whose content is skipped, with the number of those of its name that are open.
    skipped: Option<(Vec<u8>, usize)>,
    preformatted: usize,
    is_done: bool,
}

impl TextEmitter {
    fn widen(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    fn write_gap(&mut self) {
        if self.has_text {
            self.text.extend(self.gap.bytes(self.line_ends));
        }
        (self.gap, self.line_ends, self.has_text) = (Gap::None, 0, true);
    }

    fn start(&mut self) -> Option<State> {
        let (name, is_empty) = (self.name.clone(), self.is_xml && self.is_self_closing);
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth += usize::from(*skipped == name && !is_empty);
        } else if SKIPPED.contains(&name.as_slice()) {
            self.skipped = (!is_empty).then(|| (name.clone(), 1));
        } else {
            self.is_in_head = (self.is_in_head || name == b"head" && !is_empty) && IN_HEAD.contains(&name.as_slice());
            self.mark(&name);
            self.preformatted += usize::from(name == b"pre" && !is_empty);
        }
        self.last_start_tag.clone_from(&name);
        match name.as_slice() {
            _ if is_empty => None,
            b"title" | b"textarea" => Some(State::RcData),
            b"script" => Some(State::ScriptData),
            b"style" | b"iframe" | b"noembed" | b"noframes" | b"xmp" => Some(State::RawText),
            b"plaintext" if !self.is_xml => Some(State::PlainText),
            _ => None,
        }
    }

    fn end(&mut self) {
        let name = self.name.clone();
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth -= usize::from(*skipped == name);
            if *depth == 0 {
                self.skipped = None;
            }
            return;
        }
        self.is_in_head &= name != b"head";
        self.mark(&name);
        self.preformatted = self.preformatted.saturating_sub(usize::from(name == b"pre"));
    }

    /// Notes the white space that a tag stands for.
    fn mark(&mut self, name: &[u8]) {
        match name {
            b"br" => {
                self.line_ends += 1;
                self.widen(Gap::LineEnd);
            }
            b"td" | b"th" | b"option" => self.widen(Gap::Space),
            name if BLOCKS.contains(&name) => self.widen(Gap::Paragraph),
            _ => {}
        }
    }
}

impl Emitter for TextEmitter {
    type Token = Vec<u8>;

    fn set_last_start_tag(&mut self, last_start_tag: Option<&[u8]>) {
        self.last_start_tag = last_start_tag.unwrap_or_default().to_vec();
    }

    fn emit_eof(&mut self) {
        self.is_done = true;
    }

    fn emit_error(&mut self, _: Error) {}

    fn should_emit_errors(&mut self) -> bool {
        false
    }

    fn pop_token(&mut self) -> Option<Vec<u8>> {
        let is_due = self.text.len() >= CHUNK || (self.is_done && !self.text.is_empty());
        is_due.then(|| std::mem::take(&mut self.text))
    }

    fn emit_string(&mut self, text: &[u8]) {
        let is_space = |byte: &u8| b" \t\n\r\x0c".contains(byte);
        if self.skipped.is_some() || (self.is_in_head && text.iter().all(is_space)) {
            return;
        }
        self.is_in_head = false;
        if self.preformatted > 0 {
            self.write_gap();
            self.text.extend(text);
            return;
        }
        for (number, word) in text.split(is_space).enumerate() {
            if number > 0 {
                self.widen(Gap::Space);
            }
            if !word.is_empty() {
                self.write_gap();
                self.text.extend(word);
            }
        }
    }

    fn init_start_tag(&mut self) {
        self.name.clear();
        (self.tag, self.is_self_closing) = (TagKind::Start, false);
    }

    fn init_end_tag(&mut self) {
        self.name.clear();
        (self.tag, self.is_self_closing) = (TagKind::End, false);
    }

    fn emit_current_tag(&mut self) -> Option<State> {
        match self.tag {
            TagKind::Start => self.start(),
            TagKind::End => {
                self.end();
                None
            }
        }
    }

    fn set_self_closing(&mut self) {
        self.is_self_closing = true;
    }

    fn push_tag_name(&mut self, name: &[u8]) {
        let room = NAME.saturating_sub(self.name.len());
        self.name.extend(&name[..name.len().min(room)]);
    }

    fn current_is_appropriate_end_tag_token(&mut self) -> bool {
        self.tag == TagKind::End && !self.last_start_tag.is_empty() && self.name == self.last_start_tag
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&mut self) -> bool {
        self.is_xml
    }

    fn init_comment(&mut self) {}
    fn emit_current_comment(&mut self) {}
    fn emit_current_doctype(&mut self) {}
    fn set_force_quirks(&mut self) {}
    fn push_comment(&mut self, _: &[u8]) {}
    fn push_doctype_name(&mut self, _: &[u8]) {}
    fn init_doctype(&mut self) {}
    fn init_attribute(&mut self) {}
    fn push_attribute_name(&mut self, _: &[u8]) {}
    fn push_attribute_value(&mut self, _: &[u8]) {}
    fn set_doctype_public_identifier(&mut self, _: &[u8]) {}
    fn set_doctype_system_identifier(&mut self, _: &[u8]) {}
    fn push_doctype_public_identifier(&mut self, _: &[u8]) {}
    fn push_doctype_system_identifier(&mut self, _: &[u8]) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(page: &str, is_xml: bool) -> String {
        HtmlText::new(page.as_bytes(), is_xml).collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn only_text_stays_and_blocks_end_paragraphs() {
        let cases = [
            ("a  b\n c", "a b c"),
            ("<p>One <b>bold</b>er</p><p>two", "One bolder\n\ntwo"),
            ("one<br>two<br/>three<br><br>four", "one\ntwo\nthree\n\nfour"),
            ("<div><div>a</div></div>b", "a\n\nb"),
            ("<ul><li>a</li> <li>b</ul>c", "a\n\nb\n\nc"),
            ("<table><tr><td>a<td>b<tr><td>c</table>", "a b\n\nc"),
            ("a &amp; b &eacute;&#8212;&#x1f600;&nbsp;&lt;p&gt; &unknown;", "a & b é—😀\u{a0}<p> &unknown;"),
            ("a<script>if (1 < 2) { '</p>' }</script>b<style>p > a {}</style>c", "abc"),
            ("a<!-- <p>b</p> -->c", "ac"),
            ("<template><p>a</p><template>b</template>c</template>d", "d"),
            ("a<noscript><p>b</p></noscript>", "a\n\nb"),
            ("<pre>  a\n   b\n</pre>c", "  a\n   b\n\n\nc"),
            ("<p>a<textarea>b</textarea><select><option>c</select>", "a"),
            ("<p>unclosed <i>tags <p>and </b>others", "unclosed tags\n\nand others"),
            ("", ""),
            ("a < b and c > d", "a < b and c > d"),
        ];
        for (page, expected) in cases {
            assert_eq!(text(page, false), expected, "{page}");
        }
    }

    #[test]
    fn a_head_ends_where_the_body_begins() {
        let cases = [
            ("<html><head><title>T</title><meta charset=utf-8></head><body><p>a", "a"),
            ("<head><title>T</title><p>a", "a"),
            ("<head><link href=x> a", "a"),
            ("<head><style>b</style><body>a", "a"),
            ("<header>a</header>b", "a\n\nb"),
        ];
        for (page, expected) in cases {
            assert_eq!(text(page, false), expected, "{page}");
        }
    }

    #[test]
    fn empty_tags_close_their_elements_in_xhtml_alone() {
        let page = "<html><head><title/><script src='x'/></head><body><p>a</p><![CDATA[b & c]]></body></html>";
        assert_eq!(text(page, true), "a\n\nb & c");
        assert_eq!(text("<script/>a</script>b", false), "b");
        assert_eq!(text("<head/>a<template/>b", true), "ab");
    }

    #[test]
    fn long_tags_and_comments_take_no_memory() {
        let long = "x".repeat(1 << 20);
        for page in [
            format!("a<p title='{long}'>b"),
            format!("a<p {long}>b"),
            format!("a<p><!--{long}-->b"),
            format!("a<p><{long}>b"),
            format!("<!doctype {long}>a<p>b"),
        ] {
            assert_eq!(text(&page, false), "a\n\nb");
        }
        assert_eq!(text(&format!("a<p {long}"), false), "a");
        assert_eq!(text(&"語 ".repeat(50_000), false), "語 ".repeat(50_000).trim_end());
    }
}
