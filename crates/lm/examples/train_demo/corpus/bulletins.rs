//! Weather and shipping bulletins.

use super::genre::Genre;

pub const GENRE: Genre = Genre {
    era: (1880, 2020),
    facts: &[("ship", "{ship_name}"), ("harbour", "{place}"), ("coast", "{place}")],
    lists: &[
        (
            "ship_name",
            &["{woman} {surname}", "{ship_colour} {ship_thing}", "{ship_thing} of {place}", "{surname} {ship_thing}"],
        ),
        (
            "ship_colour",
            &[
                "Amber", "Black", "Blue", "Bold", "Bright", "Golden", "Green", "Grey", "Northern", "Patient", "Proud",
                "Silver",
            ],
        ),
        (
            "ship_thing",
            &[
                "Arrow", "Curlew", "Dolphin", "Gannet", "Hope", "Lantern", "Maiden", "Meteor", "Osprey", "Petrel",
                "Pilgrim", "Plover", "Rose", "Spray", "Star", "Swallow", "Tern", "Thistle", "Venture", "Wanderer",
            ],
        ),
        (
            "vessel",
            &[
                "barge", "barque", "brig", "coaster", "collier", "cutter", "ferry", "ketch", "lugger", "schooner",
                "steamer", "trawler", "tug",
            ],
        ),
        (
            "cargo",
            &[
                "{n:11-480} barrels of {flavour}",
                "{n:21-980} sacks of oats",
                "{n:11-190} crates of {hard} lamps",
                "{n:12-90} tons of slate",
                "{n:11-190} bales of {colour} wool",
                "{w:3-19} bells for {place}",
                "{n:40-900} cases of pears",
                "{n:5-60} organ pipes",
            ],
        ),
        (
            "sky",
            &[
                "bright spells",
                "drizzle",
                "fog",
                "low cloud",
                "hail",
                "heavy showers",
                "squalls",
                "mist",
                "steady rain",
                "thunder",
            ],
        ),
    ],
    opening: &[
        "bulletin for {coast}, {dated}: wind {wind}, force {w:3-9}, {sky} later, sea {dec:0-4} metres.",
        "{harbour}, {dated}, {time}: the {vessel} {ship} came in with {cargo} under {name}.",
        "the {vessel} {ship}, master {name}, left {harbour} for {coast} on {dated} with {cargo}.",
        "on {dated} the station at {coast} measured {dec:1-60} millimetres of rain and gusts of {n:21-98} knots from the {wind}.",
        "gale warning issued at {time} on {dated} for all craft between {harbour} and {coast}: {wind} {n:31-70} knots.",
        "{name}, keeper of the light at {coast}, reports {sky} and @ {wind} wind of {n:8-60} knots on {dated}.",
        "shipping news from {harbour} for {dated}: {n:3-60} arrivals, {n:3-60} departures, {sky} since {time}.",
    ],
    body: &[
        &[
            "pressure at {place} fell to {n:961-1009} millibars at {soon:20-120} and is expected to rise by {w:2-19}.",
            "by {soon:30-150} {sky} had spread to {place}, and visibility was {n:90-900} metres.",
            "at {soon:20-120} the wind backed {wind} and dropped to {n:3-19} knots off {place}.",
            "the thermometer at {place} showed {n:6-21} degrees at {soon:20-120}, {w:2-9} fewer than on the day before.",
            "high water at {place} is at {soon:30-200}, {dec:1-8} metres, with a strong {wind} set.",
            "between {place} and {place} there was {sky} until {soon:40-200}.",
        ],
        &[
            "the {vessel} {ship_name}, from {place}, waits off the bar with {cargo}.",
            "also in port are the {ship_name} and the {vessel} {ship_name}, the latter {w:2-19} days overdue.",
            "{person} brought the {vessel} {ship_name} in at {soon:30-150} with {n:12-190} centimetres of water in the hold.",
            "the {ship_name} of {place} lost {w:2-9} sails and put back under {person}.",
            "fishing boats landed {ten:12-980} kilograms of herring at {place} by {soon:60-200}.",
            "the pilot {person} boarded the {ship_name} at {soon:20-150}, {w:2-19} miles {wind} of {place}.",
        ],
        &[
            "at {place} a buoy marked {n:2-98} is adrift; {person} will replace it on {later:1-9}.",
            "the light at {place} will show [red|white|green|yellow] every {n:3-40} seconds from {later:1-9}.",
            "a wreck {n:3-29} metres down off {place} is marked by {w:2-5} [red|white|green|yellow] lamps.",
            "the channel at {place} has silted to {dec:2-9} metres, says {person}.",
            "mariners should keep {w:2-9} cables {wind} of {place}, where {person} is laying a line.",
            "dues at {place} rise to {n:3-90} {coin} a ton on {later:2-20}.",
        ],
        &[
            "on {later:1-2} expect {sky} from the {wind}, then {sky}, with {n:6-21} degrees at {place}.",
            "the outlook for {later:2-5} is {sky}, wind {wind} {n:8-48} knots, best near {place}.",
            "{person} of the {place} office foresees {sky} by {later:1-4} and {dec:2-40} millimetres of rain.",
            "farmers around {place} should expect {n:11-60} millimetres of rain by {later:1-5}.",
            "from {later:1-4} the wind turns {wind}, {n:5-40} knots, with {sky} over {place}.",
            "the river at {place} may rise by {n:9-90} centimetres before {later:2-9}.",
        ],
        &[
            "the ferry to {place} is cancelled until {later:1-5}; {n:11-480} passengers are housed in the {building}.",
            "some {n:13-90} passengers landed at {place}, among them {person}, @ {trade}, and @ {animal}.",
            "the harbour clerk {person} seized {cargo} hidden under coal.",
            "@ {trade} named {person} swam {n:60-900} metres to save @ {animal}.",
            "the storm took {n:12-480} tiles from the {building} at {place} and @ {colour} boat from {person}.",
            "on the quay, {cargo} will be sold at {n:2-98} {street} by {person} on {later:2-20}.",
        ],
        &[
            "the next report follows at {soon:60-240} from {place}.",
            "this bulletin was signed by {person} at {soon:30-200}.",
            "the record for {place}, {n:99-140} knots measured by {person}, was not reached.",
            "the {ship_name} sails for {place} on {later:2-12} with {cargo}.",
            "freight to {place} stands at {n:11-90} {coin}, to {place} at {n:11-90}.",
            "signals from {place} were last seen at {soon:20-150} by {person}.",
        ],
    ],
};
