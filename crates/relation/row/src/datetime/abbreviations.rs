//! Abbreviations of time zones that input takes: those of PostgreSQL's default set. Most are an offset, some a zone in which they meant now this, now
//! that.

use super::TimeZone;

/// Minutes east of Greenwich, by abbreviation in lower case, sorted.
static ABBREVIATIONS: [(&str, i16); 145] = [
    ("acdt", 630),
    ("acsst", 630),
    ("acst", 570),
    ("act", -300),
    ("acwst", 525),
    ("adt", -180),
    ("aedt", 660),
    ("aesst", 660),
    ("aest", 600),
    ("aft", 270),
    ("akdt", -480),
    ("akst", -540),
    ("almst", 420),
    ("almt", 360),
    ("amt", -240),
    ("ast", -240),
    ("awsst", 540),
    ("awst", 480),
    ("azost", 0),
    ("azot", -60),
    ("bdst", 120),
    ("bdt", 360),
    ("bnt", 480),
    ("bort", 480),
    ("bot", -240),
    ("bra", -180),
    ("brst", -120),
    ("brt", -180),
    ("bst", 60),
    ("btt", 360),
    ("cadt", 630),
    ("cast", 570),
    ("cct", 480),
    ("cdt", -300),
    ("cest", 120),
    ("cet", 60),
    ("cetdst", 120),
    ("chadt", 825),
    ("chast", 765),
    ("chut", 600),
    ("clst", -180),
    ("cot", -300),
    ("cst", -360),
    ("cxt", 420),
    ("ddut", 600),
    ("eat", 180),
    ("edt", -240),
    ("eest", 180),
    ("eet", 120),
    ("eetdst", 180),
    ("egst", 0),
    ("egt", -60),
    ("est", -300),
    ("fet", 180),
    ("fjst", 780),
    ("fjt", 720),
    ("fnst", -60),
    ("fnt", -120),
    ("galt", -360),
    ("gamt", -540),
    ("gft", -180),
    ("gilt", 720),
    ("gmt", 0),
    ("hkt", 480),
    ("hst", -600),
    ("ict", 420),
    ("idt", 180),
    ("irt", 210),
    ("ist", 120),
    ("jayt", 540),
    ("jst", 540),
    ("kdt", 600),
    ("kgst", 360),
    ("kst", 540),
    ("lhst", 630),
    ("ligt", 600),
    ("mart", -570),
    ("mdt", -360),
    ("mest", 120),
    ("mesz", 120),
    ("met", 60),
    ("metdst", 120),
    ("mez", 60),
    ("mht", 720),
    ("mmt", 390),
    ("mpt", 600),
    ("msd", 240),
    ("mst", -420),
    ("must", 300),
    ("mut", 240),
    ("mvt", 300),
    ("myt", 480),
    ("ndt", -150),
    ("nft", -210),
    ("npt", 345),
    ("nst", -210),
    ("nzdt", 780),
    ("nzst", 720),
    ("nzt", 720),
    ("pdt", -420),
    ("pet", -300),
    ("pgt", 600),
    ("pht", 480),
    ("pkst", 360),
    ("pkt", 300),
    ("pmdt", -120),
    ("pmst", -180),
    ("pont", 660),
    ("pst", -480),
    ("pwt", 540),
    ("pyst", -180),
    ("ret", 240),
    ("sadt", 630),
    ("sast", 120),
    ("sct", 240),
    ("taht", -600),
    ("tft", 300),
    ("tjt", 300),
    ("tot", 780),
    ("trut", 600),
    ("tvt", 720),
    ("uct", 0),
    ("ulast", 540),
    ("ut", 0),
    ("utc", 0),
    ("uyst", -120),
    ("uyt", -180),
    ("uzst", 360),
    ("uzt", 300),
    ("vut", 660),
    ("wadt", 480),
    ("wakt", 720),
    ("wast", 420),
    ("wat", 60),
    ("wdt", 540),
    ("wet", 0),
    ("wetdst", 60),
    ("wft", 720),
    ("wgst", -120),
    ("wgt", -180),
    ("xjt", 360),
    ("yapt", 600),
    ("yekst", 360),
    ("z", 0),
    ("zulu", 0),
];

/// Zones, by abbreviation as they have it themselves, sorted.
#[rustfmt::skip]
static ZONES: [(&str, &str); 50] = [
    ("AMST", "Asia/Yerevan"),
    ("ANAST", "Asia/Anadyr"),
    ("ANAT", "Asia/Anadyr"),
    ("ARST", "America/Argentina/Buenos_Aires"),
    ("ART", "America/Argentina/Buenos_Aires"),
    ("AZST", "Asia/Baku"),
    ("AZT", "Asia/Baku"),
    ("CKT", "Pacific/Rarotonga"),
    ("CLT", "America/Santiago"),
    ("DAVT", "Antarctica/Davis"),
    ("EASST", "Pacific/Easter"),
    ("EAST", "Pacific/Easter"),
    ("FKST", "Atlantic/Stanley"),
    ("FKT", "Atlantic/Stanley"),
    ("GEST", "Asia/Tbilisi"),
    ("GET", "Asia/Tbilisi"),
    ("GYT", "America/Guyana"),
    ("IOT", "Indian/Chagos"),
    ("IRKST", "Asia/Irkutsk"),
    ("IRKT", "Asia/Irkutsk"),
    ("KGT", "Asia/Bishkek"),
    ("KOST", "Pacific/Kosrae"),
    ("KRAST", "Asia/Krasnoyarsk"),
    ("KRAT", "Asia/Krasnoyarsk"),
    ("LHDT", "Australia/Lord_Howe"),
    ("LINT", "Pacific/Kiritimati"),
    ("LKT", "Asia/Colombo"),
    ("MAGST", "Asia/Magadan"),
    ("MAGT", "Asia/Magadan"),
    ("MAWT", "Antarctica/Mawson"),
    ("MSK", "Europe/Moscow"),
    ("NOVST", "Asia/Novosibirsk"),
    ("NOVT", "Asia/Novosibirsk"),
    ("NUT", "Pacific/Niue"),
    ("OMSST", "Asia/Omsk"),
    ("OMST", "Asia/Omsk"),
    ("PETST", "Asia/Kamchatka"),
    ("PETT", "Asia/Kamchatka"),
    ("PYT", "America/Asuncion"),
    ("SGT", "Asia/Singapore"),
    ("TKT", "Pacific/Fakaofo"),
    ("TMT", "Asia/Ashgabat"),
    ("ULAT", "Asia/Ulaanbaatar"),
    ("VET", "America/Caracas"),
    ("VLAST", "Asia/Vladivostok"),
    ("VLAT", "Asia/Vladivostok"),
    ("VOLT", "Europe/Volgograd"),
    ("YAKST", "Asia/Yakutsk"),
    ("YAKT", "Asia/Yakutsk"),
    ("YEKT", "Asia/Yekaterinburg"),
];

/// The zone of an abbreviation in lower case whose offset depends on the time.
pub(super) fn zone(word: &str) -> Option<TimeZone> {
    let word = word.to_ascii_uppercase();
    let at = ZONES.binary_search_by_key(&&*word, |(name, _)| name).ok()?;
    let (abbreviation, zone) = ZONES[at];
    TimeZone::abbreviated(zone, abbreviation)
}

/// Seconds east of Greenwich of an abbreviation in lower case.
pub(super) fn find(word: &str) -> Option<i32> {
    let at = ABBREVIATIONS
        .binary_search_by_key(&word, |(name, _)| name)
        .ok()?;
    Some(i32::from(ABBREVIATIONS[at].1) * 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abbreviations_are_sorted_and_found() {
        assert!(ABBREVIATIONS.is_sorted());
        assert_eq!(find("cet"), Some(3600));
        assert_eq!(find("pdt"), Some(-7 * 3600));
        assert_eq!(find("z"), Some(0));
        assert_eq!(find("nowhere"), None);
        assert!(ZONES.is_sorted());
        for (abbreviation, name) in ZONES {
            let word = abbreviation.to_ascii_lowercase();
            assert!(zone(&word).is_some(), "{name} is a zone");
            assert_eq!(find(&word), None);
        }
    }
}
