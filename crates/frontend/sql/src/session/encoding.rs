//! Encodings of the texts of clients, by PostgreSQL's names for them.
//!
//! Texts are UTF-8, and come and go as they are: for a client that says `SQL_ASCII`, too, whose bytes nobody converts.

/// What a client may call the form of its texts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Encoding {
    Utf8,
    /// `SQL_ASCII`: bytes as they are. What comes has to be UTF-8 all the same.
    Bytes,
    /// One of PostgreSQL's that texts do not come in.
    Other,
}

/// The others, all of their names as they are compared: without signs.
const OTHERS: &str = " abc alt big5 euccn eucjis2004 eucjp euckr euctw gb18030 gbk iso88591 iso885910 iso885913 iso885914 iso885915 \
    iso885916 iso88592 iso88593 iso88594 iso88595 iso88596 iso88597 iso88598 iso88599 johab koi8 koi8r koi8u latin1 latin10 latin2 \
    latin3 latin4 latin5 latin6 latin7 latin8 latin9 mskanji muleinternal shiftjis shiftjis2004 sjis tcvn tcvn5712 uhc vscii win \
    win1250 win1251 win1252 win1253 win1254 win1255 win1256 win1257 win1258 win866 win874 win932 win936 win949 win950 windows1250 \
    windows1251 windows1252 windows1253 windows1254 windows1255 windows1256 windows1257 windows1258 windows866 windows874 windows932 \
    windows936 windows949 windows950 ";

impl Encoding {
    /// The one of this name, in which case and signs say nothing; `None`: there is none.
    pub fn named(name: &str) -> Option<Self> {
        let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        Some(match plain.to_lowercase() {
            plain if matches!(&*plain, "utf8" | "unicode") => Self::Utf8,
            plain if plain == "sqlascii" => Self::Bytes,
            plain if !plain.is_empty() && OTHERS.contains(&format!(" {plain} ")) => Self::Other,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Encoding;

    #[test]
    fn names_are_compared_without_case_and_signs() {
        for (name, found) in [
            ("UTF8", Some(Encoding::Utf8)),
            ("utf-8", Some(Encoding::Utf8)),
            ("Unicode", Some(Encoding::Utf8)),
            ("SQL_ASCII", Some(Encoding::Bytes)),
            ("sqlascii", Some(Encoding::Bytes)),
            ("ISO 8859-1", Some(Encoding::Other)),
            ("latin1", Some(Encoding::Other)),
            ("abc alt", None),
            ("latin", None),
            ("", None),
            ("-", None),
        ] {
            assert_eq!(Encoding::named(name), found, "{name}");
        }
    }
}
