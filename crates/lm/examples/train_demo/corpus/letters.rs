//! Letters between relatives and friends.

use super::genre::Genre;

pub const GENRE: Genre = Genre {
    era: (1880, 1990),
    facts: &[("pet", "{animal}"), ("aim", "{place}")],
    lists: &[
        (
            "news",
            &[
                "{person} has bought @ {colour} {animal} for {n:14-280} {coin}",
                "the {surname} {building} is for sale at {k:900-9800} {coin}",
                "your {relative} has taken up {subject}",
                "old {surname} lost {w:3-19} hens to @ {animal}",
                "{person} and {person} are engaged since {date}",
                "the {building} has been painted {colour} by {person}",
            ],
        ),
        (
            "gift",
            &[
                "@ {made}",
                "{w:2-9} packets of {flavour} from {place}",
                "@ {colour} {object}",
                "the recipe for {dish} that {given} {surname} gave me",
                "@ {object} from {place}",
                "{w:2-12} jars of plums flavoured with {flavour}",
            ],
        ),
    ],
    opening: &[
        "dear {first}, your letter of {date} reached me in {place} only on {later:5-30}, by way of {place}.",
        "my dear {first}, we arrived at {aim} on {dated} after {w:3-19} hours in @ {mood} {surname} coach.",
        "dear {first}, thank you for {gift}, which came safely to {street} on {date}.",
        "dearest {first}, it is {time} on {date} here in {aim}, and the {pet} is asleep on my papers.",
        "dear {first}, I write from {n:2-98} {street}, {aim}, where I have been lodging since {date}.",
        "dear cousin {first}, forgive my silence of {n:3-40} weeks; I was at {place} until {date} with @ {mood} cough.",
        "dear {first} {last}, you asked me on {date} about the {building} at {aim}, and I went to see it with {given}.",
    ],
    body: &[
        &[
            "the journey cost {n:11-95} {coin}, and at {place} @ {trade} sat on my {object}.",
            "my room, with its {colour} curtains and {hard} bed, costs {n:11-60} {coin} a week.",
            "it has rained for {n:3-29} days, and the road to {place} is under {n:11-95} centimetres of water.",
            "on the way I met {person}, the {trade}, who sends you {n:12-90} good wishes and @ {object}.",
            "I sleep badly because the {trade} above me, {person}, practises until {soon:200-400}.",
            "there are {w:3-19} of us at table, and {person} talks of nothing but {subject}.",
        ],
        &[
            "you will be amused to hear that {news}.",
            "the great news is that {news}, and nobody in {place} can speak of anything else.",
            "I was told by {person} that {news}; can it be true?",
            "did you know that {news}?",
            "{given} writes that {news}, but you know how {given} exaggerates.",
            "last {weekday} I heard from {person} that {news}.",
        ],
        &[
            "with this letter you will find {gift}; please keep it dry.",
            "I have put aside {gift} for your {relative} and {gift} for {given}.",
            "could you send me {gift} before {later:9-60}?",
            "on {weekday} I shall post {gift}, care of {person} in {place}.",
            "tell {person} that I still owe {given} {gift}.",
            "in the market at {place} I found {gift} and thought of you at once.",
        ],
        &[
            "my work for {person} goes slowly: {n:12-98} pages done and {n:110-480} still to copy.",
            "I now teach {subject} to {w:3-19} pupils at the {building}, for {n:11-80} {coin} a month.",
            "the doctor, {surname} of {place}, allows me {w:2-9} glasses of milk and {n:15-95} minutes of walking a day.",
            "yesterday I cooked {dish} with {flavour} for {w:4-19} guests, and {person} asked for more.",
            "the {pet} has learned to open the {colour} door and has eaten {w:3-19} of my candles.",
            "since {date} I have read {w:3-19} books on {subject}, all lent by {person}.",
        ],
        &[
            "I hope to leave {aim} on {later:4-40} and to reach {place} {w:2-9} days later.",
            "if the boat from {place} is on time, expect me on {later:5-60} at about {soon:60-240}.",
            "please ask {person} to meet me at {place} on {later:5-50} with the {colour} cart.",
            "come and visit us before {later:20-90}; there is a bed at {n:2-98} {street} and @ {mood} {pet}.",
            "we shall stay until {later:9-70}, unless {person} calls us back to {place}.",
            "do not reply before {later:5-30}, as I shall be walking near {place} with {given}.",
        ],
        &[
            "your affectionate {role2}, {name2}.",
            "give my love to {given}, {given} and the {animal}, and believe me your old friend {name2}.",
            "with {n:100-990} greetings from all at {street}, your {first2}.",
            "in haste, for the post leaves at {soon:20-90}, your {role2} {name2}.",
            "ever yours, {name2}, formerly of {place}.",
            "{given} and {given} send kisses, and so does your {mood} {role2} {first2}.",
        ],
    ],
};
