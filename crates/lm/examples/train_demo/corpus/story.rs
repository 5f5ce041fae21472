//! A text while it is generated: its facts so far, and the expansion of templates.
//!
//! Template syntax:
//! - `[a|b|c]` chooses one alternative (they nest; an empty one is allowed),
//! - `{slot}` is a fact of the text if it has one of that name, else a fresh draw,
//! - `{key=slot}` draws and remembers the result as the fact `key`,
//! - `{n:3-40}` is a number in that range; see [`Story::draw`] for its variants,
//! - `@` is "a" or "an".

use std::collections::BTreeMap;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::clock::Clock;
use super::{grammar, names, words};

/// Texts start between these minutes of the day: late enough for most trades, early enough for what follows.
const EARLIEST: u32 = 7 * 60;
const LATEST: u32 = 13 * 60;

/// A named list of fillers.
pub type List = (&'static str, &'static [&'static str]);

/// The facts of one text. Facts make its sentences agree with one another.
pub struct Story<'a> {
    rng: &'a mut ChaCha8Rng,
    lists: &'static [List],
    facts: BTreeMap<String, String>,
    clock: Clock,
}

impl<'a> Story<'a> {
    /// Starts a text with two people, a currency, and a point in time within `era`.
    pub fn new(rng: &'a mut ChaCha8Rng, lists: &'static [List], era: (u32, u32)) -> Self {
        let clock =
            Clock::new(rng.random_range(era.0..=era.1), rng.random_range(0..365), rng.random_range(EARLIEST..LATEST));
        let mut story = Self { rng, lists, facts: BTreeMap::new(), clock };
        story.settle_person("");
        story.settle_person("2");
        story.settle("coin", "{currency}");
        story.settle("home", "{place}");
        story
    }

    /// Expands `template` and remembers the result as a fact.
    pub fn settle(&mut self, key: &str, template: &str) {
        let value = self.expand(template);
        self.facts.insert(key.to_string(), value);
    }

    /// Names a person and fixes the pronouns; `suffix` tells the people of a text apart.
    fn settle_person(&mut self, suffix: &str) {
        let (first, kin, pronouns) = if self.below(2) == 0 {
            (self.pick(names::WOMEN), "{kin_she}", ["she", "her", "her", "herself"])
        } else {
            (self.pick(names::MEN), "{kin_he}", ["he", "him", "his", "himself"])
        };
        self.settle(&format!("role{suffix}"), kin);
        let last = self.surname();
        let name = format!("{first} {last}");
        for (key, value) in [("name", name.as_str()), ("first", first), ("last", last.as_str())] {
            self.facts.insert(format!("{key}{suffix}"), value.to_string());
        }
        for (key, value) in ["he", "him", "his", "himself"].into_iter().zip(pronouns) {
            self.facts.insert(format!("{key}{suffix}"), value.to_string());
        }
    }

    /// A number below `n` (zero if `n` is).
    pub fn below(&mut self, n: usize) -> usize {
        // Drawn as u32: the width of usize must not change the corpus.
        self.rng.random_range(0..(n as u32).max(1)) as usize
    }

    /// One entry of `list` (the empty string if it has none).
    pub fn pick(&mut self, list: &[&'static str]) -> &'static str {
        let index = self.below(list.len());
        list.get(index).copied().unwrap_or_default()
    }

    /// Expands a template; see the module for the syntax.
    pub fn expand(&mut self, template: &str) -> String {
        let mut out = String::new();
        let mut rest = template;
        while let Some(at) = rest.find(['{', '[']) {
            out.push_str(&rest[..at]);
            let (inner, after) = bracketed(&rest[at..]);
            let filled = if rest[at..].starts_with('{') { self.slot(inner) } else { self.choice(inner) };
            out.push_str(&filled);
            rest = after;
        }
        out + rest
    }

    fn choice(&mut self, inner: &str) -> String {
        let alternatives = split_alternatives(inner);
        let index = self.below(alternatives.len());
        self.expand(alternatives.get(index).copied().unwrap_or_default())
    }

    fn slot(&mut self, inner: &str) -> String {
        match inner.split_once('=') {
            Some((key, spec)) => {
                let value = self.value(spec);
                self.facts.insert(key.to_string(), value.clone());
                value
            }
            None => self.value(inner),
        }
    }

    fn value(&mut self, spec: &str) -> String {
        if let Some(fact) = self.facts.get(spec) {
            return fact.clone();
        }
        let local = self.lists.iter().find(|(name, _)| *name == spec).map(|(_, list)| *list);
        match local.or_else(|| words::list(spec)) {
            Some(list) => {
                let entry = self.pick(list);
                self.expand(entry)
            }
            None => self.draw(spec),
        }
    }

    /// The slots that are computed. An unknown one is kept unchanged, so that the tests detect it.
    fn draw(&mut self, spec: &str) -> String {
        let (kind, range) = spec.split_once(':').unwrap_or((spec, ""));
        match kind {
            "n" => self.number(range).to_string(),
            "k" => grammar::grouped(self.number(range)),
            "ord" => grammar::ordinal_words(self.number(range)),
            "w" => grammar::number_words(self.number(range)),
            "dec" => format!("{}.{}", self.number(range), self.below(9) + 1),
            "ten" => grammar::grouped(self.number(range) * 10),
            "code" => self.code(),
            "person" => format!("{} {}", self.given(), self.surname()),
            "woman" => self.pick(names::WOMEN).to_string(),
            "man" => self.pick(names::MEN).to_string(),
            "given" => self.given().to_string(),
            "surname" => self.surname(),
            "place" => self.place(),
            _ => self.moment(kind, range).unwrap_or_else(|| format!("{{{spec}}}")),
        }
    }

    /// Slots of time. The clock only moves forward, so later sentences refer to later moments.
    fn moment(&mut self, kind: &str, range: &str) -> Option<String> {
        match kind {
            "later" => {
                let days = self.number(range);
                self.clock.add_days(days);
            }
            "on" => {
                let years = self.number(range);
                let day = self.below(365) as u32;
                self.clock.add_years(years, day);
            }
            "at" => {
                let years = self.number(range);
                let day = self.below(365) as u32;
                self.clock.reach(years, day);
            }
            "soon" => {
                let minutes = self.number(range);
                self.clock.add_minutes(minutes);
            }
            _ => {}
        }
        match kind {
            "later" | "date" => Some(self.clock.date()),
            "dated" => Some(self.clock.full_date()),
            "on" | "at" | "year" => Some(self.clock.year().to_string()),
            "age" => Some(grammar::number_words(self.clock.years_passed())),
            "soon" | "time" => Some(self.clock.time()),
            "season" => Some(self.clock.season().to_string()),
            _ => None,
        }
    }

    /// A number from a range written "3-40".
    fn number(&mut self, range: &str) -> u32 {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let low = low.parse().unwrap_or(0);
        let high = high.parse().unwrap_or(low).max(low);
        self.rng.random_range(low..=high)
    }

    fn given(&mut self) -> &'static str {
        let list = if self.below(2) == 0 { names::WOMEN } else { names::MEN };
        self.pick(list)
    }

    fn surname(&mut self) -> String {
        let middle = if self.below(4) == 0 { self.pick(names::SURNAME_MIDDLES) } else { "" };
        format!("{}{middle}{}", self.pick(names::SURNAME_STARTS), self.pick(names::SURNAME_ENDS))
    }

    fn place(&mut self) -> String {
        let core = format!("{}{}", self.pick(names::PLACE_STARTS), self.pick(names::PLACE_ENDS));
        match self.below(6) {
            0 => format!("{} {core}", self.pick(names::PLACE_BEFORE)),
            1 => format!("{core} {}", self.pick(names::PLACE_AFTER)),
            _ => core,
        }
    }

    /// A model, lot or ticket code such as "KV-482".
    fn code(&mut self) -> String {
        let letters = self.pick(words::CODE_LETTERS);
        format!("{letters}-{}", self.number("110-999"))
    }
}

/// Splits text that starts with a bracket into the content of the bracket and the rest.
fn bracketed(text: &str) -> (&str, &str) {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return (&text[1..at], &text[at + 1..]);
        }
    }
    (&text[1..], "")
}

/// Splits at the bars that are not inside a nested bracket.
fn split_alternatives(inner: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let bar = |c: char| {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == '|' && depth == 0
    };
    inner.split(bar).collect()
}
