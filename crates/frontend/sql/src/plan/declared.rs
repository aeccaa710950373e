//! Types that clients declare parameters as, by their oids.

use super::Surroundings;
use crate::error::{Result, SqlError};
use crate::sqlstate;
use vellum_row::Type;

/// The oid of `unknown`: the type is to be inferred, as for 0.
const UNKNOWN: u32 = 705;

/// PostgreSQL's types that are not here: names, oids, oids of their arrays.
const OTHERS: &str = "tid 27 1010 cid 29 1012 xml 142 143 point 600 1017 lseg 601 1018 path 602 1019 box 603 1020 polygon 604 1027 line 628 629 \
    circle 718 719 macaddr8 774 775 money 790 791 macaddr 829 1040 timetz 1266 1270 bit 1560 1561 varbit 1562 1563 refcursor 1790 2201 \
    regoper 2203 2208 regoperator 2204 2209 pg_lsn 3220 3221 pg_ndistinct 3361 0 \
    pg_dependencies 3402 0 tsvector 3614 3643 tsquery 3615 3645 gtsvector 3642 3644 regconfig 3734 3735 regdictionary 3769 3770 \
    int4range 3904 3905 numrange 3906 3907 tsrange 3908 3909 tstzrange 3910 3911 daterange 3912 3913 int8range 3926 3927 \
    jsonpath 4072 4073 int4multirange 4451 6150 nummultirange 4532 6151 tsmultirange 4533 6152 \
    tstzmultirange 4534 6153 datemultirange 4535 6155 int8multirange 4536 6157 pg_brin_bloom_summary 4600 0 \
    pg_brin_minmax_multi_summary 4601 0 pg_mcv_list 5017 0";

/// PostgreSQL's types that no value is of, in the same form.
const PSEUDO: &str = "pg_ddl_command 32 0 table_am_handler 269 0 index_am_handler 325 0 cstring 2275 1263 any 2276 0 anyarray 2277 0 trigger 2279 0 \
    language_handler 2280 0 internal 2281 0 anyelement 2283 0 _record 2287 0 anynonarray 2776 0 fdw_handler 3115 0 tsm_handler 3310 0 \
    anyenum 3500 0 anyrange 3831 0 event_trigger 3838 0 anymultirange 4537 0 anycompatiblemultirange 4538 0 anycompatible 5077 0 \
    anycompatiblearray 5078 0 anycompatiblenonarray 5079 0 anycompatiblerange 5080 0";

/// The type with an oid that a client has declared; `None`: it is to be inferred. Of a domain the type that it stands on.
///
/// # Errors
/// `0A000` for a type of PostgreSQL that is not here, `42704` for what is nobody's.
pub(super) fn declared(oid: u32, around: Surroundings<'_>) -> Result<Option<Type>> {
    if matches!(oid, 0 | UNKNOWN) {
        return Ok(None);
    }
    if let Some(ty) = around.settings.type_with_oid(oid) {
        return Ok(Some(ty));
    }
    if let Some((_, domain)) = around.catalog.domain(oid) {
        return Ok(Some(domain.ty));
    }
    Err(match (called(oid, PSEUDO), called(oid, OTHERS)) {
        (Some(name), _) => {
            let message = format!("cannot accept a value of type {name}");
            SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
        }
        (_, Some(name)) => SqlError::unsupported(format!("the type {name}")),
        _ => {
            let message = format!("type with OID {oid} does not exist");
            SqlError::new(sqlstate::UNDEFINED_OBJECT, message)
        }
    })
}

/// The name of a type of a list.
fn called(oid: u32, list: &str) -> Option<String> {
    let oid = oid.to_string();
    let words: Vec<&str> = list.split(' ').collect();
    let mut rows = words.chunks_exact(3);
    rows.find_map(|row| match row {
        [name, own, _] if *own == oid => Some((*name).to_owned()),
        [name, _, array] if *array == oid => Some(format!("{name}[]")),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::{OTHERS, PSEUDO, called};
    use vellum_row::Type;

    #[test]
    fn no_type_of_the_lists_is_here() {
        for list in [OTHERS, PSEUDO] {
            let words: Vec<&str> = list.split(' ').collect();
            assert_eq!(words.len() % 3, 0, "three words a type");
            for row in words.chunks_exact(3) {
                let oid: u32 = row[1].parse().unwrap();
                assert_eq!(Type::from_oid(oid), None, "{}", row[0]);
                assert_eq!(called(oid, list).as_deref(), Some(row[0]));
            }
        }
    }

    #[test]
    fn arrays_are_told_by_their_elements() {
        assert_eq!(called(1017, OTHERS).as_deref(), Some("point[]"));
        assert_eq!(called(23, OTHERS), None);
    }
}
