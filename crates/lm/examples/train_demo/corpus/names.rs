//! Parts of the names of people and places.

pub const WOMEN: &[&str] = &[
    "Ada", "Agnes", "Alma", "Amelia", "Anneke", "Astrid", "Beatrix", "Berit", "Bianca", "Bridget", "Camille", "Carmen",
    "Cecily", "Clara", "Cora", "Daphne", "Delia", "Dorothea", "Edith", "Elena", "Elsa", "Esther", "Eva", "Fenna",
    "Flora", "Freya", "Gerda", "Greta", "Hanna", "Harriet", "Hedda", "Helen", "Ida", "Imogen", "Ingrid", "Irene",
    "Isolde", "Ivy", "Joan", "Josefa", "Judith", "Karin", "Katya", "Laura", "Lena", "Lidia", "Linnea", "Lotte",
    "Lucia", "Mabel", "Magda", "Marta", "Matilda", "Maud", "Mina", "Miriam", "Nadia", "Nell", "Nora", "Odile", "Olga",
    "Paloma", "Petra", "Phoebe", "Renata", "Rosa", "Ruth", "Salome", "Selma", "Sigrid", "Sonia", "Stella", "Tamsin",
    "Tessa", "Thea", "Ulla", "Ursula", "Vera", "Viola", "Wanda", "Wilma", "Yvette", "Zora",
];

pub const MEN: &[&str] = &[
    "Abel", "Adrian", "Alban", "Ambrose", "Anton", "Arne", "August", "Barnaby", "Basil", "Benno", "Bruno", "Casper",
    "Cedric", "Clement", "Conrad", "Cyril", "Dario", "Denis", "Edgar", "Edmund", "Elias", "Emil", "Enzo", "Felix",
    "Fergus", "Florian", "Frank", "Gareth", "George", "Gideon", "Gregor", "Gustav", "Harald", "Henrik", "Hugo", "Igor",
    "Isaac", "Ivan", "Jasper", "Joel", "Jonas", "Julius", "Karl", "Kasimir", "Lambert", "Leo", "Linus", "Lorenz",
    "Lukas", "Magnus", "Malcolm", "Marius", "Martin", "Mateo", "Maurice", "Milo", "Nestor", "Nils", "Oscar", "Osric",
    "Otto", "Owen", "Pascal", "Paul", "Percy", "Pietro", "Quentin", "Ralph", "Reuben", "Rolf", "Rufus", "Samuel",
    "Silas", "Simon", "Stefan", "Sven", "Theo", "Tobias", "Ulrich", "Victor", "Walter", "Yorick", "Zeno",
];

pub const SURNAME_STARTS: &[&str] = &[
    "Ab", "Al", "Ar", "Bal", "Bar", "Bel", "Ber", "Bran", "Bur", "Cal", "Car", "Chil", "Cor", "Crad", "Dal", "Dar",
    "Del", "Dor", "Dun", "El", "Er", "Fal", "Fen", "Fer", "Gal", "Gar", "Glan", "Hal", "Har", "Hol", "Im", "Jar",
    "Kel", "Ker", "Lan", "Lar", "Lor", "Mal", "Mar", "Mel", "Mor", "Nar", "Nor", "Or", "Pal", "Par", "Pel", "Quil",
    "Ral", "Ros", "Sal", "Sar", "Sel", "Sor", "Tal", "Tar", "Tor", "Tren", "Ul", "Val", "Var", "Wal", "Wen", "Wil",
    "Yar", "Zel",
];

pub const SURNAME_MIDDLES: &[&str] = &["a", "e", "i", "o", "en", "er", "in"];

pub const SURNAME_ENDS: &[&str] = &[
    "bin", "brook", "by", "combe", "cott", "dane", "dell", "den", "don", "dridge", "ditch", "field", "ford", "gan",
    "gate", "gill", "grave", "ham", "hurst", "kin", "land", "ley", "lin", "low", "man", "mere", "mond", "more", "nell",
    "ner", "nick", "nor", "rick", "rin", "row", "sby", "sen", "shaw", "som", "son", "stead", "stock", "ston", "ter",
    "thorn", "ton", "vane", "vick", "wald", "ward", "well", "wick", "win", "worth", "yer",
];

pub const PLACE_STARTS: &[&str] = &[
    "Alder", "Amber", "Ash", "Barrow", "Beck", "Birch", "Black", "Bramble", "Bright", "Broad", "Calder", "Castle",
    "Clay", "Cold", "Copper", "Crane", "Crow", "Dene", "Drift", "Edder", "Elm", "Fair", "Falcon", "Fallow", "Fern",
    "Flint", "Fox", "Glass", "Gold", "Grey", "Gull", "Hare", "Hazel", "Heron", "High", "Hollow", "Iron", "Ivy",
    "Kettle", "Kings", "Lark", "Linden", "Long", "Marl", "Marsh", "Mill", "Moss", "Nettle", "North", "Oak", "Otter",
    "Pebble", "Pine", "Quarry", "Raven", "Red", "Reed", "Rook", "Rush", "Salt", "Sand", "Sedge", "Silver", "Slate",
    "Stone", "Swan", "Thistle", "Thorn", "Wether", "White", "Willow", "Winter", "Wolds", "Yarrow",
];

pub const PLACE_ENDS: &[&str] = &[
    "bank", "bay", "borough", "bourne", "bridge", "brook", "bury", "by", "cliff", "combe", "cote", "dale", "den",
    "fell", "field", "ford", "gate", "ham", "haven", "hurst", "ley", "low", "mere", "minster", "mouth", "ness", "pool",
    "port", "shaw", "side", "stead", "stow", "thorpe", "ton", "vale", "wade", "water", "well", "wick", "wold", "wood",
    "worth",
];

pub const PLACE_BEFORE: &[&str] =
    &["Great", "Little", "Lower", "Middle", "Old", "New", "Nether", "South", "Upper", "West"];

pub const PLACE_AFTER: &[&str] =
    &["Abbas", "Cross", "End", "Green", "Hill", "Hythe", "Magna", "Moor", "Parva", "Quay", "Regis", "Sands", "Spa"];
