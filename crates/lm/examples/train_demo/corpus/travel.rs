//! Travel notes.

use super::genre::Genre;

pub const GENRE: Genre = Genre {
    era: (1890, 2019),
    facts: &[("inn", "[Blue|Golden|Old|Red|White] {inn_animal}"), ("goal", "{place}")],
    lists: &[
        (
            "inn_animal",
            &[
                "Bear", "Boar", "Bull", "Crane", "Dolphin", "Eagle", "Fox", "Goose", "Hart", "Heron", "Horse", "Lamb",
                "Ox", "Pelican", "Ram", "Raven", "Salmon", "Stag", "Swan", "Unicorn",
            ],
        ),
        (
            "way",
            &[
                "a night train",
                "a rented bicycle",
                "the coast path",
                "a mail boat",
                "a hired [pony|mule|donkey|horse]",
                "the {surname} coach",
                "a cable car",
                "the old salt road",
                "a canal barge",
                "a branch line of {w:3-14} stops",
            ],
        ),
        (
            "sight",
            &[
                "the {building} with its {n:11-190} {colour} tiles",
                "a bridge of {w:3-19} arches built by {person}",
                "a garden where {person} keeps {n:11-190} tortoises",
                "the {mood} little museum of {subject}",
                "a waterfall {n:9-190} metres high",
                "the {hard} statue of the {trade} {surname}",
                "a tower of {n:90-480} steps",
                "the cave where {person} hid for {n:5-90} days",
            ],
        ),
        (
            "meal",
            &["{dish} with {flavour}", "{dish} and {dish}", "cold {dish} with {flavour}", "{flavour} tea and {dish}"],
        ),
    ],
    opening: &[
        "we reached {goal} by {way} on {dated}, {w:3-19} hours late and very hungry.",
        "{goal} lies {n:9-190} kilometres from {home}, and {way} takes you there for {n:4-90} {coin}.",
        "on {dated} {name} and I set out from {home} for {goal} by {way}.",
        "from {home} to {goal} by {way}: {n:2-30} hours, {w:2-9} changes, and one {mood} guard named {surname}.",
        "my notebook for {dated} begins in {goal}, a town of {k:1200-48000} people and {w:3-19} bakeries.",
        "anyone going to {goal} should follow {name}, who has taken {way} there {n:11-98} times since {year}.",
        "the map sold in {home} for {w:2-19} {coin} shows {goal} {n:4-40} kilometres too far {wind}, as we learned on {dated}.",
    ],
    body: &[
        &[
            "the {inn} at {n:2-98} {street} has {w:5-19} rooms at {n:6-95} {coin} and serves {meal}.",
            "we stayed {w:2-9} nights at the {inn}, kept by {person} and @ {mood} {animal}.",
            "a bed at the {inn} costs {n:6-95} {coin}; ask {person} for room {n:2-40}.",
            "as the {inn} was full of {trade}s from {place}, {person} put us up for {n:3-60} {coin}.",
            "{person}, the host of the {inn}, lit the stove at {soon:20-90} and told us about {sight}.",
            "my window at the {inn} looked {wind} towards {sight}.",
        ],
        &[
            "do not miss {sight}, open from {soon:10-60} on {weekday}s.",
            "after breakfast we walked {n:3-28} kilometres to see {sight}.",
            "the chief sight is {sight}, and entry costs {w:2-19} {coin}.",
            "{person}, our guide, preferred {sight} to {sight}.",
            "by {soon:60-200} we had seen {sight} and drunk {w:2-9} cups of {flavour} tea.",
            "children will like {sight}, {n:5-55} minutes {wind} of the {building}.",
        ],
        &[
            "for lunch there was {meal}, {w:3-19} {coin} a plate, under @ {colour} awning.",
            "@ {trade} named {surname} shared {meal} with us and refused our {n:2-40} {coin}.",
            "in {street} we ate {meal} at {soon:60-200} beside @ {animal} and its owner, {person}.",
            "the pride of the place is {meal}, best at {n:2-98} {street}.",
            "hungry, we paid {n:12-60} {coin} for {meal} and did not regret it.",
            "the market on {weekday} offers {meal} and {n:5-60} kinds of cheese.",
        ],
        &[
            "on {later:1-6} rain from the {wind} kept us indoors for {n:3-40} hours with a book on {subject}.",
            "the thermometer at the {building} stood at {n:2-36} degrees on {later:1-6}, and the wind blew from the {wind}.",
            "on {later:1-6} we hired @ {colour} boat from {person} at {w:3-19} {coin} an hour.",
            "next day, {later:1-3}, we lost the path near {place} and were rescued by {person} after {n:2-9} hours.",
            "on {later:1-6} @ {animal} ate our map of {place}, so we asked {person} the way.",
            "I bought @ {made} from {person} on {later:1-6} for {n:4-90} {coin}.",
        ],
        &[
            "in the reading room a page of {year} tells of {n:11-480} {trade}s who settled here from {place}.",
            "few visitors know that {person} wrote {w:3-19} books on {subject} in a room above the {building}.",
            "people here speak slowly, greet every {animal}, and count in {coin} of {n:12-40} parts, says {person}.",
            "the {weekday} bells ring {n:21-120} times in memory of {person}, @ {trade}.",
            "a plaque at {n:2-98} {street} recalls {person}, who reached {place} from here on foot in {n:3-60} days.",
            "the whole place smells of {flavour}, thanks to the {surname} factory and its {n:21-480} workers.",
        ],
        &[
            "the last [train|boat|coach|bus] to {place} leaves at {soon:60-200}.",
            "we left for {place} on {later:1-9} with {n:3-60} photographs and one {colour} umbrella too few.",
            "in all the stay cost {n:40-690} {coin}, of which {n:3-39} went on postcards to {person}.",
            "I shall return on {later:30-300}, if only for {sight}.",
            "from here {way} goes on to {place}, {n:11-190} kilometres {wind}.",
            "{person} waved us off at {soon:60-200}, holding @ {object} and {meal} for the road.",
        ],
    ],
};
