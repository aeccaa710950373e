//! The lists of words that names and comments are made of.
//!
//! Paper: TPC Benchmark H, revision 3.0.1, clauses 4.2.2.13 (types, containers, segments, priorities, instructions, modes, nouns, verbs and
//! the rest) and 4.2.3 (colours, nations, regions).
//!
//! Differences: the words of a list are equally likely; the benchmark's own generator gives some of them more weight, which the
//! specification does not ask for.

pub const REGIONS: [&str; 5] = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"];

/// Each with the number of its region.
pub const NATIONS: [(&str, i64); 25] = [
    ("ALGERIA", 0),
    ("ARGENTINA", 1),
    ("BRAZIL", 1),
    ("CANADA", 1),
    ("EGYPT", 4),
    ("ETHIOPIA", 0),
    ("FRANCE", 3),
    ("GERMANY", 3),
    ("INDIA", 2),
    ("INDONESIA", 2),
    ("IRAN", 4),
    ("IRAQ", 4),
    ("JAPAN", 2),
    ("JORDAN", 4),
    ("KENYA", 0),
    ("MOROCCO", 0),
    ("MOZAMBIQUE", 0),
    ("PERU", 1),
    ("CHINA", 2),
    ("ROMANIA", 3),
    ("SAUDI ARABIA", 4),
    ("VIETNAM", 2),
    ("RUSSIA", 3),
    ("UNITED KINGDOM", 3),
    ("UNITED STATES", 1),
];

#[rustfmt::skip]
pub const COLOURS: [&str; 92] = [
    "almond", "antique", "aquamarine", "azure", "beige", "bisque", "black", "blanched", "blue", "blush", "brown", "burlywood", "burnished",
    "chartreuse", "chiffon", "chocolate", "coral", "cornflower", "cornsilk", "cream", "cyan", "dark", "deep", "dim", "dodger", "drab",
    "firebrick", "floral", "forest", "frosted", "gainsboro", "ghost", "goldenrod", "green", "grey", "honeydew", "hot", "indian", "ivory",
    "khaki", "lace", "lavender", "lawn", "lemon", "light", "lime", "linen", "magenta", "maroon", "medium", "metallic", "midnight", "mint",
    "misty", "moccasin", "navajo", "navy", "olive", "orange", "orchid", "pale", "papaya", "peach", "peru", "pink", "plum", "powder", "puff",
    "purple", "red", "rose", "rosy", "royal", "saddle", "salmon", "sandy", "seashell", "sienna", "sky", "slate", "smoke", "snow", "spring",
    "steel", "tan", "thistle", "tomato", "turquoise", "violet", "wheat", "white", "yellow",
];

pub const TYPES: [&[&str]; 3] = [
    &["STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"],
    &["ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"],
    &["TIN", "NICKEL", "BRASS", "STEEL", "COPPER"],
];

pub const CONTAINERS: [&[&str]; 2] = [
    &["SM", "LG", "MED", "JUMBO", "WRAP"],
    &["CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"],
];

pub const SEGMENTS: [&str; 5] = [
    "AUTOMOBILE",
    "BUILDING",
    "FURNITURE",
    "MACHINERY",
    "HOUSEHOLD",
];

pub const PRIORITIES: [&str; 5] = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"];

pub const INSTRUCTIONS: [&str; 4] = [
    "DELIVER IN PERSON",
    "COLLECT COD",
    "NONE",
    "TAKE BACK RETURN",
];

pub const MODES: [&str; 7] = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"];

#[rustfmt::skip]
pub const NOUNS: [&str; 45] = [
    "packages", "requests", "accounts", "deposits", "foxes", "ideas", "theodolites", "pinto beans", "instructions", "dependencies",
    "excuses", "platelets", "asymptotes", "courts", "dolphins", "multipliers", "sauternes", "warthogs", "frets", "dinos", "attainments",
    "somas", "Tiresias", "patterns", "forges", "braids", "hockey players", "frays", "warhorses", "dugouts", "notornis", "epitaphs",
    "pearls", "tithes", "waters", "orbits", "gifts", "sheaves", "depths", "sentiments", "decoys", "realms", "pains", "grouches",
    "escapades",
];

#[rustfmt::skip]
pub const VERBS: [&str; 40] = [
    "sleep", "wake", "are", "cajole", "haggle", "nag", "use", "boost", "affix", "detect", "integrate", "maintain", "nod", "was", "lose",
    "sublate", "solve", "thrash", "promise", "engage", "hinder", "print", "x-ray", "breach", "eat", "grow", "impress", "mold", "poach",
    "serve", "run", "dazzle", "snooze", "doze", "unwind", "kindle", "play", "hang", "believe", "doubt",
];

#[rustfmt::skip]
pub const ADJECTIVES: [&str; 29] = [
    "special", "pending", "unusual", "express", "furious", "sly", "careful", "blithe", "quick", "fluffy", "slow", "quiet", "ruthless",
    "thin", "close", "dogged", "daring", "brave", "stealthy", "permanent", "enticing", "idle", "busy", "regular", "final", "ironic",
    "even", "bold", "silent",
];

#[rustfmt::skip]
pub const ADVERBS: [&str; 28] = [
    "sometimes", "always", "never", "furiously", "slyly", "carefully", "blithely", "quickly", "fluffily", "slowly", "quietly",
    "ruthlessly", "thinly", "closely", "doggedly", "daringly", "bravely", "stealthily", "permanently", "enticingly", "idly", "busily",
    "regularly", "finally", "ironically", "evenly", "boldly", "silently",
];

#[rustfmt::skip]
pub const PREPOSITIONS: [&str; 47] = [
    "about", "above", "according to", "across", "after", "against", "along", "alongside of", "among", "around", "at", "atop", "before",
    "behind", "beneath", "beside", "besides", "between", "beyond", "by", "despite", "during", "except", "for", "from", "in place of",
    "inside", "instead of", "into", "near", "of", "on", "outside", "over", "past", "since", "through", "throughout", "to", "toward",
    "under", "until", "up", "upon", "without", "with", "within",
];

#[rustfmt::skip]
pub const AUXILIARIES: [&str; 18] = [
    "do", "may", "might", "shall", "will", "would", "can", "could", "should", "ought to", "must", "will have to", "shall have to",
    "could have to", "should have to", "must have to", "need to", "try to",
];

pub const TERMINATORS: [&str; 6] = [".", ";", ":", "?", "!", "--"];
