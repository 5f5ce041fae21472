//! Lists that several genres share.

use super::things;

/// Prefixes of codes; a code is one of them and a number.
pub const CODE_LETTERS: &[&str] =
    &["AK", "BD", "BR", "CL", "DV", "EX", "FN", "GH", "HT", "JR", "KV", "LM", "MP", "NS", "PT", "QL", "RX", "TS", "VW"];

const CURRENCIES: &[&str] = &["crowns", "dollars", "ducats", "florins", "guilders", "marks", "pounds", "shillings"];

const TRADES: &[&str] = &[
    "accountant",
    "apothecary",
    "archivist",
    "baker",
    "bell founder",
    "blacksmith",
    "boatbuilder",
    "bookbinder",
    "botanist",
    "brewer",
    "carpenter",
    "cartographer",
    "clockmaker",
    "cobbler",
    "cooper",
    "dairy farmer",
    "dentist",
    "engraver",
    "ferry pilot",
    "fishmonger",
    "gardener",
    "glazier",
    "harbour clerk",
    "ink maker",
    "joiner",
    "lamp maker",
    "lens grinder",
    "librarian",
    "locksmith",
    "mason",
    "miller",
    "nurse",
    "optician",
    "organ builder",
    "painter",
    "plumber",
    "potter",
    "printer",
    "rope maker",
    "saddler",
    "sail maker",
    "schoolteacher",
    "seamstress",
    "surveyor",
    "tailor",
    "tanner",
    "tinsmith",
    "upholsterer",
    "weaver",
    "wheelwright",
];

const SUBJECTS: &[&str] = &[
    "algebra",
    "anatomy",
    "astronomy",
    "bookkeeping",
    "botany",
    "chemistry",
    "drawing",
    "geography",
    "geometry",
    "Greek",
    "Italian",
    "Latin",
    "law",
    "mechanics",
    "music",
    "navigation",
    "optics",
    "philosophy",
    "singing",
    "surveying",
];

const STREET_ENDS: &[&str] = &["Street", "Lane", "Road", "Row", "Terrace", "Square", "Hill", "Walk", "Yard", "Avenue"];

const WIND: &[&str] = &["north", "northeast", "east", "southeast", "south", "southwest", "west", "northwest"];

const MOODS: &[&str] = &[
    "brisk",
    "calm",
    "careful",
    "cheerful",
    "curious",
    "dignified",
    "friendly",
    "gentle",
    "good-humoured",
    "grave",
    "hopeful",
    "lively",
    "modest",
    "noisy",
    "orderly",
    "patient",
    "proud",
    "quiet",
    "rather muddled",
    "relieved",
    "sleepy",
    "solemn",
    "stubborn",
    "tireless",
    "warm",
];

const WEEKDAYS: &[&str] = &["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

const KIN_SHE: &[&str] = &["aunt", "cousin", "godmother", "great-aunt", "niece", "sister", "sister-in-law"];

const KIN_HE: &[&str] = &["brother", "brother-in-law", "cousin", "godfather", "great-uncle", "nephew", "uncle"];

const ELDERS: &[&str] = &["aunt", "father", "godmother", "grandfather", "grandmother", "mother", "stepfather", "uncle"];

/// The shared list of that name.
pub fn list(name: &str) -> Option<&'static [&'static str]> {
    Some(match name {
        "currency" => CURRENCIES,
        "colour" => things::COLOURS,
        "trade" => TRADES,
        "subject" => SUBJECTS,
        "animal" => things::ANIMALS,
        "object" => things::OBJECTS,
        "building" => things::BUILDINGS,
        "street" => &["{surname} {street_end}", "{given} {street_end}"],
        "street_end" => STREET_ENDS,
        "wind" => WIND,
        "dish" => things::DISHES,
        "flavour" => things::FLAVOURS,
        "mood" => MOODS,
        "weekday" => WEEKDAYS,
        "elder" => ELDERS,
        "kin_she" => KIN_SHE,
        "kin_he" => KIN_HE,
        "relative" => &["{kin_she} {woman}", "{kin_he} {man}"],
        "hard" => things::HARD,
        "hard_object" => things::HARD_OBJECTS,
        "soft" => things::SOFT,
        "soft_object" => things::SOFT_OBJECTS,
        "made" => &["{hard} {hard_object}", "{hard} {hard_object}", "{soft} {soft_object}"],
        _ => return None,
    })
}
