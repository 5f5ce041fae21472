//! Short lives of invented people.

use super::genre::Genre;

pub const GENRE: Genre = Genre {
    era: (1690, 1930),
    facts: &[("work", "{trade}"), ("guild", "{place}")],
    lists: &[
        (
            "origin",
            &[
                "@ {trade} and {w:3-12}-times mayor",
                "@ {trade} from {place}",
                "@ {mood} {trade}",
                "{trade} {surname} of {place}",
            ],
        ),
        (
            "feat",
            &[
                "@ {made} with {n:12-96} moving parts",
                "@ {colour} {object} for the {building} at {place}",
                "@ catalogue of {k:210-4900} {subject} terms",
                "@ {n:14-90} page handbook for every young {work}",
                "@ map of the {w:3-19} parishes around {place}",
                "@ public {building} with {n:14-160} windows",
            ],
        ),
        (
            "habit",
            &[
                "feeding @ {animal} at breakfast",
                "walking {w:3-14} miles before work",
                "singing to @ {animal}",
                "answering letters in {colour} ink",
                "eating {dish} on {weekday}s",
                "carrying @ {object} everywhere",
            ],
        ),
    ],
    opening: &[
        "{name} was born in {home} on {dated}, the {ord:2-9} child of {origin}.",
        "{name}, {work} of {home}, was born on {dated} in a house beside the {building} in {street}.",
        "the {work} {name} came into the world at {home} on {dated}, in rooms above the {surname} {building}.",
        "born on {dated}, {name} grew up in {street}, {home}, where {his} {elder} worked as @ {trade}.",
        "few people in {home} now remember {name}, the {work}, who was born there on {dated}.",
        "{name} ({year} was the year of {his} birth) became the most {mood} {work} that {home} ever had.",
        "on {dated}, in the village of {home}, @ {trade} named {surname} became the parent of {name}, later a well-known {work}.",
    ],
    body: &[
        &[
            "in {at:9-15}, aged {age}, {he} was sent to {place} to learn {subject} from {person}.",
            "{first} went to school with the {surname} family until {at:10-15} and left with a prize for {subject}.",
            "an illness at the age of {w:5-9} left {him} [deaf in one ear|weak in one leg|pale for years], but {he} studied {subject} under {person} until {at:12-17}.",
            "{his} {elder} hoped for a career in {subject}, yet by {at:13-18} {last} was sweeping floors for @ {trade} in {place}.",
            "apprenticed in {at:13-16} to {person} of {place}, {he} earned {n:3-40} {coin} a year and board.",
            "at {w:6-12} {he} could recite {k:110-980} lines of {subject} rules, which amused {person}.",
        ],
        &[
            "{he} opened a workshop at {n:2-98} {street}, {guild}, in {at:21-29} with {ten:11-94} {coin} borrowed from {his} {elder}.",
            "by {at:24-33} {last} employed {w:3-19} people in {guild}, among them the young {trade} {person}.",
            "the guild of {guild} admitted {him} in {at:22-30} after {he} presented {feat}.",
            "{last} moved to {guild} in {at:22-33}, bought @ {building} for {k:310-9800} {coin}, and never left the street again.",
            "from {at:23-30} onward {he} worked at {guild} for {person}, at {n:11-95} {coin} a month.",
            "a journey of {n:21-190} days through {place} and {place} in {at:22-30} changed {his} ideas about {subject}.",
        ],
        &[
            "{his} best known work, finished in {at:31-44}, is {feat}.",
            "in {at:31-44} {he} completed {feat}, which {person} called \"the most {mood} thing in {place}\".",
            "{last} spent {w:2-11} years on {feat} and was paid only {n:12-95} {coin} for it.",
            "the {building} of {place} still shows {feat}, made by {last} in {at:31-44}.",
            "together with {person}, {he} produced {feat} in the [cold|wet|long] winter of {at:31-44}.",
            "visitors in {at:31-44} came from as far as {place} to see {feat}.",
        ],
        &[
            "{he} married the {trade} {person} in {at:24-45}, and the couple raised {w:2-9} children in {street}.",
            "neighbours recalled @ {mood} person, fond of {habit} and of {habit}.",
            "{last} never married, shared a house with {his} cousin {given}, and was known for {habit}.",
            "{his} diaries, {w:3-19} volumes in all, mention {habit} no fewer than {n:21-480} times.",
            "on {weekday}s {he} taught {subject} to {n:5-48} children of {place} without charge.",
            "a quarrel with {person} over {n:14-900} {coin} cost {him} the friendship of half of {place}.",
        ],
        &[
            "the town of {place} gave {him} @ [bronze|silver|gold] medal in {at:46-58} and a pension of {n:14-190} {coin}.",
            "in {at:46-58} the flood at {place} ruined {n:21-480} of {his} drawings, and {he} began again [without complaint|at once|the next week].",
            "{he} was elected to the council of {place} in {at:46-58} by a margin of {w:2-19} votes.",
            "after {at:46-58} {his} hands shook, so {given} {surname} did the fine work while {last} kept the accounts.",
            "{last} published {w:2-9} essays on {subject} between {at:45-50} and {on:2-5}, all printed in {place}.",
            "@ {animal} named {given} followed {him} daily to the {building} from {at:45-54} until {on:2-5}.",
        ],
        &[
            "{he} died in {place} in {at:61-88}, aged {age}, and left {k:210-9800} {coin} to the {building}.",
            "{last} lived until {at:60-90} and was buried at {place} on {date}, beside {his} friend {person}.",
            "when {he} died in {at:60-88} the {work}s of {place} [hung|carried] {colour} ribbons for {n:8-60} days.",
            "{his} last letter, written at {place} in {at:60-89}, asks {given} {surname} to look after @ {mood} {animal} and @ {animal}.",
            "a plaque at {n:2-98} {street}, put up {n:11-60} years after {his} death in {at:60-86}, misspells {his} name.",
        ],
    ],
};
