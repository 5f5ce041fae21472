//! Entries of auction catalogues.

use super::genre::Genre;

pub const GENRE: Genre = Genre {
    era: (1710, 1950),
    facts: &[("lot", "{n:2-980}"), ("item", "{made}"), ("maker", "{person}"), ("town", "{place}")],
    lists: &[
        (
            "mark",
            &[
                "@ {animal} in @ {shape}",
                "the letters of {surname}",
                "@ {shape} and the number {n:2-98}",
                "a crowned {animal}",
                "the arms of {place}",
                "@ {colour} {shape}",
            ],
        ),
        ("shape", &["circle", "diamond", "crescent", "star", "triangle", "shield", "square", "wheel", "lozenge"]),
        (
            "damage",
            &[
                "one foot replaced by {person}",
                "@ {n:3-48} millimetre scratch near the {shape} mark",
                "traces of {colour} paint",
                "{w:3-12} small holes on the left side",
                "a repair dated {year} by {surname}",
                "@ {colour} stain {n:3-60} millimetres across",
            ],
        ),
    ],
    opening: &[
        "lot {lot}: @ {item}, made by {maker} of {town} about {year}, {n:6-38} centimetres high.",
        "lot {lot} is @ {item} with {colour} decoration, signed by {maker} and dated {dated}.",
        "@ [fine|rare|handsome|plain|slender|heavy|much-used] {item} from {town}, lot {lot}, bears the mark of {maker} and the year {year}.",
        "offered as lot {lot}, this {item} was ordered from {maker} by {name} on {dated}.",
        "{maker}, @ {trade} in {town}, made this {item} in {year}; it is lot {lot} of our sale.",
        "lot {lot}, from the house of {name} at {n:2-98} {street}, {town}: @ {item} of {year}.",
        "under number {lot} we present @ {item}, {n:6-38} by {n:6-38} centimetres, {town}, {year}.",
    ],
    body: &[
        &[
            "the base is stamped with {mark} and with {mark}.",
            "inside, {mark} is scratched beside the words \"for {given}, {w:2-12} {coin}.\"",
            "it weighs {ten:14-480} grams and carries {mark} on @ {colour} ground.",
            "the decoration, {w:3-19} [birds|stars|leaves|fish|ships] around {mark}, is typical of {place}.",
            "a label in {colour} ink names {person} of {place} and shows {mark}.",
            "its lining of {colour} silk, sewn by {person}, shows {mark}.",
        ],
        &[
            "condition is good, with {damage} and {damage}.",
            "there is {damage}, otherwise it looks as it did when {person} drew it in {on:5-60}.",
            "a report by {person} mentions {damage}.",
            "bidders should note {damage}, which {person} saw only under @ {n:3-30} power lens.",
            "it was cleaned in {on:9-70} by {person}, who left {damage}.",
            "age has brought {damage}, which {person} of {place} thinks charming.",
        ],
        &[
            "it passed to {person} in {on:4-40}, then to @ {trade} in {place}, who paid {n:14-900} {coin}.",
            "bought by {person} in {place} for {n:14-480} {coin} in {on:4-40}, it was later in the {surname} collection.",
            "{name} kept it in @ {building} at {place} until {on:4-40}, in the care of {person}.",
            "the {surname} family of {place} owned it for {n:21-140} years and used it to hold {flavour}.",
            "it was lost in {on:4-40} and found {n:3-60} years later by @ {trade} under the floor of the {building} at {place}.",
            "in {on:4-40} {person} traded it in {place} for {w:2-9} barrels of {flavour} and @ {animal}.",
        ],
        &[
            "a similar piece, with {mark}, fetched {k:310-9800} {coin} at {place} in {on:3-30}.",
            "only {w:8-19} others are known, {w:2-7} of them in the museum of {place}.",
            "it is described on page {n:11-480} of the study by {person}, {place}, {on:3-30}.",
            "it was shown in {on:3-30} at the {building} of {place} as number {n:11-480}.",
            "compare the {made} in {place}, which {person} dates to {on:3-30}.",
            "an expert from {place}, {person}, doubted its age in {on:3-30} but came round after {n:3-40} tests.",
        ],
        &[
            "together with it we sell @ {colour} {object} and {n:11-90} letters from {person}.",
            "a fitted {soft} case with {w:2-9} {hard} locks, by {person}, is included.",
            "the key, {n:21-98} millimetres long, is tied to it with @ {colour} ribbon from {place}.",
            "with the lot comes a bill of {on:1-9} from {person} for {n:12-480} {coin}.",
            "one of {w:3-12} missing parts, @ {hard} hinge, was supplied by {person} in {on:2-20}.",
            "the buyer also receives a drawing of it by {person}, {n:14-60} centimetres wide.",
        ],
        &[
            "the estimate is {k:310-4800} to {k:4900-9900} {coin}.",
            "bids below {k:210-6900} {coin} will be referred to {person}.",
            "it may be viewed at {n:2-190} {street} from {later:3-20} to {later:3-20}.",
            "the sale begins at {soon:20-200} on {later:9-60}, and lot {lot} should come up about {soon:30-120}.",
            "the seller, @ {trade} from {place}, hopes for {k:410-9800} {coin}.",
            "carriage to {place} costs {n:11-90} {coin} and takes {w:3-19} days.",
        ],
    ],
};
