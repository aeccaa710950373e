//! Types that users have made, as a transaction sees them: what the forms of their values depend on.
//!
//! A value of an enum is a *position*, and positions have the order of the labels: rows, keys and vectors of values compare them without
//! looking anything up. A position is given to a label when that is made and never changes; a label that is put between two others gets one
//! between theirs ([`EnumType::place`]). Names and labels are found here, by the oid of the type and the position.
//!
//! Invariants:
//! - U1 The labels of an enum stand in the order of their positions, and no position is used twice.
//! - U2 Oids: an enum's is even, and the type of its arrays has the next one. So an oid alone says what it is of.
//!
//! Not here: where they are kept, who may change them (SQL).

use crate::array::{Array, ArrayRef};
use crate::error::{Result, SqlError, SqlState};
use crate::settings::Settings;
use crate::snapshot::Snapshot;
use crate::types::{Type, Typmod};
use crate::value::{Value, ValueRef, check_length};
use std::borrow::Cow;
use std::sync::Arc;

/// The first oid of what users make.
pub const FIRST_USER_OID: u32 = 16384;

/// The longest label, in bytes.
pub const LABEL_BYTES_MAX: usize = 63;

/// How far the positions of labels lie apart that are made together, or behind and in front of all others: between two of them there is room for
/// 44 labels in the worst order, and for about a hundred where each is put next to the same one.
const SPACING: i64 = 1 << 44;

/// An enum, by its oid in the catalog.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct EnumId(u32);

impl EnumId {
    /// The enum with this oid; `None` if it cannot be one's (U2).
    pub const fn of(oid: u32) -> Option<Self> {
        if oid >= FIRST_USER_OID && oid.is_multiple_of(2) {
            Some(Self(oid))
        } else {
            None
        }
    }

    /// Its oid.
    pub const fn oid(self) -> u32 {
        self.0
    }

    /// The oid of the type of its arrays.
    pub const fn array_oid(self) -> u32 {
        self.0 + 1
    }
}

/// A value of an enum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EnumValue {
    /// The enum.
    pub of: EnumId,
    /// The position of the label.
    pub position: i64,
}

/// A label of an enum.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EnumLabel {
    /// Its oid in `pg_enum`.
    pub oid: u32,
    /// Where it stands among the others.
    pub position: i64,
    /// The text.
    pub text: Box<str>,
    /// Whether ALTER TYPE has added it in this transaction: it cannot be used before that has committed.
    pub fresh: bool,
}

/// An enum.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EnumType {
    /// By what it is known.
    pub id: EnumId,
    /// Oid of its schema, and its name as SQL writes it.
    pub schema: (u32, Box<str>),
    /// Its name as SQL writes it.
    pub name: Box<str>,
    /// In order (U1).
    pub labels: Vec<EnumLabel>,
}

/// Where a new label goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Neighbour<'a> {
    /// Behind all others.
    Last,
    /// In front of this one.
    Before(&'a str),
    /// Behind this one.
    After(&'a str),
}

impl EnumType {
    /// The position of the label with this number, from 0, of an enum that is made.
    pub fn first_position(number: usize) -> i64 {
        i64::try_from(number)
            .unwrap_or(i64::MAX)
            .saturating_mul(SPACING)
    }

    /// The label with this text.
    pub fn label(&self, text: &str) -> Option<&EnumLabel> {
        self.labels.iter().find(|label| &*label.text == text)
    }

    /// The label at a position.
    pub fn label_at(&self, position: i64) -> Option<&EnumLabel> {
        let found = self
            .labels
            .binary_search_by_key(&position, |label| label.position);
        found.ok().map(|at| &self.labels[at])
    }

    /// Where a new label stands: its number among the labels, and its position. Next to one that is named, most of the room is left on the side of that one.
    ///
    /// # Errors
    /// 22023 if there is no such neighbour; 54000 if there is no room.
    pub fn place(&self, neighbour: Neighbour<'_>) -> Result<(usize, i64)> {
        let number = |text: &str| {
            let found = self.labels.iter().position(|label| &*label.text == text);
            found.ok_or_else(|| {
                let message = format!("\"{text}\" is not an existing enum label");
                SqlError::new(SqlState::INVALID_PARAMETER, message)
            })
        };
        let at = match neighbour {
            Neighbour::Last => self.labels.len(),
            Neighbour::Before(text) => number(text)?,
            Neighbour::After(text) => number(text)? + 1,
        };
        let before = at.checked_sub(1).map(|at| self.labels[at].position);
        let after = self.labels.get(at).map(|label| label.position);
        let position = match (before, after) {
            (None, None) => Some(0),
            (Some(before), None) => before.checked_add(SPACING),
            (None, Some(after)) => after.checked_sub(SPACING),
            (Some(before), Some(after)) => {
                // Both ends of the range may be among them.
                let room = (i128::from(after) - i128::from(before)) as u128;
                let small = (room / 4).max(1) as i64;
                match neighbour {
                    _ if room < 2 => None,
                    Neighbour::After(_) => Some(after - small),
                    _ => Some(before + small),
                }
            }
        };
        let position = position.ok_or_else(|| {
            let message = format!("no room is left between the values of enum {}", self.name);
            SqlError::new(SqlState::PROGRAM_LIMIT, message).with_hint(
                "Create a new type and use ALTER TABLE ... ALTER COLUMN ... TYPE to change to it.",
            )
        })?;
        Ok((at, position))
    }

    /// The value of a label.
    ///
    /// # Errors
    /// 22P02 if there is none; 55P04 for one that has not committed yet.
    pub fn value(&self, text: &str, settings: &Settings) -> Result<EnumValue> {
        let label = self.label(text).ok_or_else(|| {
            let name = settings.name_of(Type::Enum(self.id));
            let message = format!("invalid input value for enum {name}: \"{text}\"");
            SqlError::new(SqlState::INVALID_TEXT, message)
        })?;
        self.usable(label, settings)
    }

    /// The value of one of its labels.
    ///
    /// # Errors
    /// 55P04 for one that has not committed yet.
    pub fn usable(&self, label: &EnumLabel, settings: &Settings) -> Result<EnumValue> {
        if label.fresh {
            let message = format!(
                "unsafe use of new value \"{}\" of enum type {}",
                label.text,
                settings.name_of(Type::Enum(self.id))
            );
            return Err(SqlError::new(SqlState::UNSAFE_NEW_ENUM_VALUE, message)
                .with_hint("New enum values must be committed before they can be used."));
        }
        Ok(EnumValue {
            of: self.id,
            position: label.position,
        })
    }

    /// The values from one to another, both included, in an array; all below or above where a bound is missing.
    ///
    /// # Errors
    /// 55P04 for one that has not committed yet.
    pub fn range(
        &self,
        from: Option<EnumValue>,
        to: Option<EnumValue>,
        settings: &Settings,
    ) -> Result<Array> {
        let inside = self.labels.iter().filter(|label| {
            from.is_none_or(|from| from.position <= label.position)
                && to.is_none_or(|to| label.position <= to.position)
        });
        let values = inside.map(|label| self.usable(label, settings).map(Value::Enum));
        let values = values.collect::<Result<Vec<_>>>()?;
        Ok(Array::of(Type::Enum(self.id), &values))
    }
}

/// What a domain is called. Its values are those of another type, so no form of them asks for more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DomainName {
    /// Its oid.
    pub oid: u32,
    /// Oid of its schema, and its name as SQL writes it.
    pub schema: (u32, Box<str>),
    /// Its name as SQL writes it.
    pub name: Box<str>,
}

/// The types that users have made.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UserTypes {
    /// By their ids.
    enums: Vec<Arc<EnumType>>,
    /// By their oids.
    domains: Vec<Arc<DomainName>>,
}

impl UserTypes {
    /// Whether there is none that has values of its own.
    pub fn is_empty(&self) -> bool {
        self.enums.is_empty()
    }

    /// An enum.
    pub fn get(&self, id: EnumId) -> Option<&Arc<EnumType>> {
        let found = self.enums.binary_search_by_key(&id, |one| one.id);
        found.ok().map(|at| &self.enums[at])
    }

    /// All enums, by oid.
    pub fn enums(&self) -> &[Arc<EnumType>] {
        &self.enums
    }

    /// Adds or replaces one.
    pub fn put(&mut self, one: Arc<EnumType>) {
        match self.enums.binary_search_by_key(&one.id, |other| other.id) {
            Ok(at) => self.enums[at] = one,
            Err(at) => self.enums.insert(at, one),
        }
    }

    /// A type's name in SQL: with its schema where a name alone, looked up in these schemas, does not lead to it.
    pub fn name_of(&self, ty: Type, path: &[u32]) -> Cow<'static, str> {
        let Some(id) = ty.enum_id() else {
            return Cow::Borrowed(ty.sql_name());
        };
        let Some(found) = self.get(id) else {
            return Cow::Owned(kept_name(ty));
        };
        let shown = self.shown(id.oid(), &found.schema, &found.name, path);
        let brackets = if ty == Type::Enum(id) { "" } else { "[]" };
        Cow::Owned(format!("{shown}{brackets}"))
    }

    /// A domain's name in SQL, as [`UserTypes::name_of`].
    pub fn domain_name(&self, oid: u32, path: &[u32]) -> Option<String> {
        let found = self.domains.binary_search_by_key(&oid, |one| one.oid);
        let found = &self.domains[found.ok()?];
        Some(self.shown(oid, &found.schema, &found.name, path))
    }

    /// The name of a type, with its schema where another or none is found by the name alone.
    fn shown(&self, oid: u32, schema: &(u32, Box<str>), name: &str, path: &[u32]) -> String {
        let named = |in_schema: &u32| {
            let mut enums = self.enums.iter();
            let same = |own: &(u32, Box<str>), other: &str| own.0 == *in_schema && other == name;
            let one = enums.find(|one| same(&one.schema, &one.name));
            let mut domains = self.domains.iter();
            let domain = domains.find(|one| same(&one.schema, &one.name));
            let domain = domain.map(|one| one.oid);
            one.map(|one| one.id.oid()).or(domain)
        };
        match path.iter().find_map(named) == Some(oid) {
            true => name.to_owned(),
            false => format!("{}.{name}", schema.1),
        }
    }

    /// Adds or replaces a domain.
    pub fn put_domain(&mut self, one: Arc<DomainName>) {
        match self
            .domains
            .binary_search_by_key(&one.oid, |other| other.oid)
        {
            Ok(at) => self.domains[at] = one,
            Err(at) => self.domains.insert(at, one),
        }
    }

    /// Takes one away, by its oid.
    pub fn remove(&mut self, oid: u32) {
        self.enums.retain(|one| one.id.oid() != oid);
        self.domains.retain(|one| one.oid != oid);
    }
}

impl Settings {
    /// The enum of a type, as the transaction sees it.
    ///
    /// # Errors
    /// 42704 if it is not there.
    pub fn enum_of(&self, id: EnumId) -> Result<&EnumType> {
        self.types.get(id).map(|found| &**found).ok_or_else(|| {
            let message = format!("type with OID {} does not exist", id.oid());
            SqlError::new(SqlState::UNDEFINED_OBJECT, message)
        })
    }

    /// The type with this oid, if there is one.
    pub fn type_with_oid(&self, oid: u32) -> Option<Type> {
        Type::from_oid(oid).filter(|ty| match ty.enum_id() {
            Some(id) => self.types.get(id).is_some(),
            None => true,
        })
    }

    /// A type's name in SQL, as messages say it: with its schema where the search path does not lead to it.
    pub fn name_of(&self, ty: Type) -> Cow<'static, str> {
        self.types.name_of(ty, &self.path)
    }

    /// The same of a domain, by its oid, if there is one.
    pub fn domain_name(&self, oid: u32) -> Option<String> {
        self.types.domain_name(oid, &self.path)
    }

    /// As `format_type` prints a type.
    pub fn format_type(&self, ty: Type, typmod: Typmod) -> String {
        match ty.enum_id() {
            Some(_) => self.name_of(ty).into_owned(),
            None => ty.format(typmod),
        }
    }
}

/// The text of a value; its position where no such label is known ([`read`]).
pub(crate) fn write(value: EnumValue, settings: &Settings, out: &mut String) {
    let found = settings.types.get(value.of);
    match found.and_then(|found| found.label_at(value.position)) {
        Some(label) => out.push_str(&label.text),
        None => out.push_str(&value.position.to_string()),
    }
}

/// The value of a text: of a label, or of a position where no types are known at all, so that what an index computes says the same whoever reads it.
///
/// # Errors
/// As [`EnumType::value`]; 42704 for an enum that is not there.
pub(crate) fn read(of: EnumId, text: &str, settings: &Settings) -> Result<EnumValue> {
    if settings.types.is_empty()
        && let Ok(position) = text.parse()
    {
        return Ok(EnumValue { of, position });
    }
    settings.enum_of(of)?.value(text, settings)
}

/// The name of a type in the text of a definition: it goes on standing for the type whatever that is called and wherever it is.
fn kept_name(ty: Type) -> String {
    format!("pg_catalog.\"{KEPT}{}\"", ty.oid())
}

/// What such a name begins with, behind its schema; the type's oid is the rest.
pub const KEPT: &str = "type ";

/// Reads a value from the protocol's binary format: that of an enum is its label, that of a snapshot its numbers.
///
/// # Errors
/// As [`crate::receive`]; 22P02 for a label that there is not.
pub fn receive_from_client(
    ty: Type,
    typmod: Typmod,
    bytes: &[u8],
    settings: &Settings,
) -> Result<Value> {
    match ty {
        Type::Enum(id) => {
            let text = crate::text::text_of_bytes(bytes)?;
            Ok(Value::Enum(read(id, text, settings)?))
        }
        ty if ty.is_snapshot() => Ok(Value::text(Snapshot::receive(bytes)?.to_string())),
        Type::Array(element) if ty.enum_id().is_some() || element.ty().is_snapshot() => {
            let element = |bytes: &[u8]| match ty.element() {
                Some(element) => receive_from_client(element, typmod, bytes, settings),
                None => Ok(Value::Null),
            };
            Array::receive_with(ty, bytes, element).map(Value::Array)
        }
        _ => crate::receive(ty, typmod, bytes),
    }
}

/// Appends a value in the protocol's binary format; a snapshot that is none of an array as text, which its value does not tell from others.
///
/// # Errors
/// As [`send`](crate::send).
pub fn send_to_client(value: ValueRef<'_>, settings: &Settings, out: &mut Vec<u8>) -> Result<()> {
    match value {
        ValueRef::Enum(value) => out.extend_from_slice(label(value, settings).as_bytes()),
        ValueRef::Array(array) if array.element().enum_id().is_some() => {
            send_labels(array, settings, out);
        }
        ValueRef::Array(array) if array.element().is_snapshot() => {
            array.send_with(out, |item, out| {
                if let Some(Ok(snapshot)) = item.as_ref().as_str().map(Snapshot::parse) {
                    snapshot.send(out);
                }
            });
        }
        value => crate::binary::put(value, out),
    }
    check_length(out.len())
}

fn label(value: EnumValue, settings: &Settings) -> String {
    let mut text = String::new();
    write(value, settings, &mut text);
    text
}

fn send_labels(array: ArrayRef<'_>, settings: &Settings, out: &mut Vec<u8>) {
    array.send_with(out, |item, out| {
        if let Value::Enum(value) = item {
            out.extend_from_slice(label(value, settings).as_bytes());
        }
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::{input, output, receive, send};

    fn mood() -> EnumType {
        let labels = ["sad", "ok", "happy"].into_iter().enumerate();
        let labels = labels.map(|(number, text)| EnumLabel {
            oid: 20_000 + number as u32,
            position: EnumType::first_position(number),
            text: text.into(),
            fresh: false,
        });
        EnumType {
            id: EnumId::of(16_384).unwrap(),
            schema: (2200, "public".into()),
            name: "mood".into(),
            labels: labels.collect(),
        }
    }

    fn settings(of: EnumType) -> Settings {
        let mut types = UserTypes::default();
        types.put(Arc::new(of));
        Settings {
            types: Arc::new(types),
            path: Arc::new([11, 2200]),
            ..Settings::default()
        }
    }

    fn add(to: &mut EnumType, text: &str, neighbour: Neighbour<'_>) -> Result<()> {
        let (at, position) = to.place(neighbour)?;
        let label = EnumLabel {
            oid: 0,
            position,
            text: text.into(),
            fresh: false,
        };
        to.labels.insert(at, label);
        assert!(to.labels.is_sorted_by(|a, b| a.position < b.position));
        Ok(())
    }

    #[test]
    fn labels_stand_where_they_were_put_until_there_is_no_room() {
        let mut own = mood();
        add(&mut own, "first", Neighbour::Before("sad")).unwrap();
        add(&mut own, "last", Neighbour::Last).unwrap();
        add(&mut own, "so", Neighbour::After("ok")).unwrap();
        let order: Vec<&str> = own.labels.iter().map(|label| &*label.text).collect();
        assert_eq!(order, ["first", "sad", "ok", "so", "happy", "last"]);
        let missing = own.place(Neighbour::Before("none")).unwrap_err();
        assert_eq!(missing.message(), "\"none\" is not an existing enum label");
        // Each next to the same one; then each next to the one before, on the side that has less room.
        for (neighbour, least) in [
            (Neighbour::Before("happy"), 90),
            (Neighbour::After("sad"), 90),
        ] {
            let mut own = mood();
            let count =
                (0..).take_while(|number| add(&mut own, &format!("{number}"), neighbour).is_ok());
            assert!(count.count() >= least);
        }
        let mut own = mood();
        let mut last = "ok".to_owned();
        let mut count = 0;
        let refused = loop {
            let next = format!("{count}");
            match add(&mut own, &next, Neighbour::Before(&last)) {
                Ok(()) => (last, count) = (next, count + 1),
                Err(error) => break error,
            }
        };
        assert!(count >= 20, "{count}");
        assert_eq!(refused.state(), SqlState::PROGRAM_LIMIT);
    }

    #[test]
    fn values_are_positions_inside_and_labels_outside() {
        let settings = settings(mood());
        let ty = Type::Enum(mood().id);
        let value = input(ty, Typmod::NONE, "ok", &settings).unwrap();
        let mut stored = Vec::new();
        send(value.as_ref(), &mut stored).unwrap();
        assert_eq!(stored, (1i64 << 44).to_be_bytes());
        assert_eq!(receive(ty, Typmod::NONE, &stored).unwrap(), value);
        let mut sent = Vec::new();
        send_to_client(value.as_ref(), &settings, &mut sent).unwrap();
        assert_eq!(sent, b"ok");
        let back = receive_from_client(ty, Typmod::NONE, b"ok", &settings);
        assert_eq!(back.unwrap(), value);
        for bad in ["", "OK", "ok "] {
            let error = input(ty, Typmod::NONE, bad, &settings).unwrap_err();
            let message = format!("invalid input value for enum mood: \"{bad}\"");
            assert_eq!(
                (error.message(), error.state().as_str()),
                (&*message, "22P02")
            );
        }
        let list = input(ty.array(), Typmod::NONE, "{happy,NULL,sad}", &settings).unwrap();
        let mut sent = Vec::new();
        send_to_client(list.as_ref(), &settings, &mut sent).unwrap();
        assert!(sent.ends_with(b"\0\0\0\x05happy\xff\xff\xff\xff\0\0\0\x03sad"));
        assert_eq!(
            receive_from_client(ty.array(), Typmod::NONE, &sent, &settings).unwrap(),
            list
        );
        let mut text = String::new();
        output(list.as_ref(), &settings, &mut text).unwrap();
        assert_eq!(text, "{happy,NULL,sad}");
    }

    #[test]
    fn a_label_that_has_not_committed_cannot_be_used() {
        let mut own = mood();
        own.labels[2].fresh = true;
        let known = settings(own.clone());
        let state = |result: Result<EnumValue>| result.unwrap_err().state().as_str().to_owned();
        assert_eq!(state(own.value("happy", &known)), "55P04");
        own.range(None, None, &known).unwrap_err();
        let ok = own.value("ok", &known).unwrap();
        assert_eq!(own.range(None, Some(ok), &known).unwrap().as_ref().len(), 2);
    }

    #[test]
    fn names_have_their_schema_where_the_path_does_not_lead_there() {
        let own = settings(mood());
        let ty = Type::Enum(mood().id);
        assert_eq!(own.name_of(ty), "mood");
        assert_eq!(own.name_of(ty.array()), "mood[]");
        let elsewhere = Settings {
            path: Arc::new([11]),
            ..own
        };
        assert_eq!(elsewhere.name_of(ty), "public.mood");
        assert_eq!(elsewhere.type_with_oid(16_385), Some(ty.array()));
        assert_eq!(elsewhere.type_with_oid(16_386), None);
    }
}
