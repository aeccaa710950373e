//! `aclexplode`: rights as rows, one for each.

use crate::error::{Result, SqlError};
use crate::expr::{Builtin, CatalogFunction, Environment};
use crate::roles::Rights;
use vellum_row::{Type, Value, ValueRef};

/// The rows of one item, as `pg_class.relacl` has it: grantor, grantee (0: everybody), right, whether it may be given on.
pub(super) fn of_item(item: &Value, env: &dyn Environment) -> Result<Vec<Vec<Value>>> {
    let ValueRef::Text(item) = item.as_ref() else {
        return Ok(Vec::new());
    };
    let (grantee, letters, grantor) =
        parts(item).ok_or_else(|| SqlError::internal("rights in another form"))?;
    let role = |name: &str| match name {
        "" => Ok(Value::Oid(0)),
        name => {
            let find = Builtin::Catalog(CatalogFunction::RegOf(Type::Regrole));
            env.ask(find, &[Value::text(name)])
        }
    };
    let (grantee, grantor) = (role(grantee)?, role(grantor)?);
    let mut rows = Vec::new();
    let mut letters = letters.chars().peekable();
    while let Some(letter) = letters.next() {
        let grantable = letters.next_if_eq(&'*').is_some();
        let found = Rights::NAMES.iter().find(|(.., own)| *own == letter);
        if let Some((_, name, _)) = found {
            rows.push(vec![
                grantor.clone(),
                grantee.clone(),
                Value::text(*name),
                Value::Bool(grantable),
            ]);
        }
    }
    Ok(rows)
}

/// Who, what and by whom. Names may be in quotes.
fn parts(item: &str) -> Option<(&str, &str, &str)> {
    let mut quoted = false;
    let equals = item.find(|c| {
        quoted ^= c == '"';
        c == '=' && !quoted
    })?;
    let (grantee, rest) = (&item[..equals], &item[equals + 1..]);
    let (letters, grantor) = rest.split_once('/')?;
    Some((grantee, letters, grantor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_taken_apart_outside_of_quotes() {
        assert_eq!(parts("a=r*w/b"), Some(("a", "r*w", "b")));
        assert_eq!(parts("=U/\"x/y\""), Some(("", "U", "\"x/y\"")));
        assert_eq!(parts("\"a=b\"=/c"), Some(("\"a=b\"", "", "c")));
        assert_eq!(parts("a"), None);
    }
}
