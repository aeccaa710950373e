//! GRANT and REVOKE of rights, and ALTER DEFAULT PRIVILEGES.
//!
//! Rights on functions, languages, tablespaces and the types of the program are not kept: everybody has them. What is given there is given already; taking
//! it from everybody is refused.

use super::acl::Deed;
use super::owner::check_database;
use super::role::{denied, no_role};
use super::{Ddl, check_no_system};
use crate::bind::{NamedType, folded, no_type, object_name};
use crate::catalog::{AclOf, Change, DefaultKind, Gated, Kind, Mode, Namespace, Oid, Relation};
use crate::database::{DATABASE, FIRST_ROLE_OID};
use crate::error::{Fields, Result, SqlError};
use crate::parse::{On, RightsChange, check_tablespace};
use crate::roles::{Grant, Rights};
use crate::sqlstate::{self, SqlState};
use crate::wire::CommandTag;
use sqlparser::ast::{Ident, ObjectName};
use std::sync::Arc;

/// The rights of a statement on objects of a kind.
#[derive(Clone)]
struct Wanted {
    rights: Rights,
    /// ALL: nobody minds if some of them cannot be given.
    all: bool,
    columns: Vec<(Rights, Vec<String>)>,
}

/// An object in messages, and whose it is.
struct Whose<'w> {
    word: &'static str,
    name: &'w str,
    owner: Oid,
}

/// Who gives, and what.
struct Giver {
    grantor: Oid,
    may: Rights,
}

impl Ddl<'_> {
    pub(super) fn change_rights(&mut self, change: &RightsChange) -> Result<CommandTag> {
        if let Some(said) = &change.grantor {
            // It says who does it, whoever that is.
            if self.role_named(said)? != self.own_role()?.oid {
                let text = "grantor must be current user";
                return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text));
            }
        }
        let grantees = self.roles_named(&change.grantees)?;
        let deed = Deed {
            give: change.give,
            option: change.option,
            grantees: &grantees,
            cascade: change.cascade,
        };
        let wanted = |all, word| wanted(change, all, word);
        match &change.on {
            On::Tables(names) => {
                for name in names {
                    let relation = self.relation_of_rights(name)?;
                    self.change_relation(&relation, change, &deed, false)?;
                }
            }
            On::Sequences(names) => {
                for name in names {
                    let relation = self.relation_of_rights(name)?;
                    if !matches!(relation.kind, Kind::Sequence(_)) {
                        let message = format!("\"{}\" is not a sequence", relation.name);
                        return Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message));
                    }
                    self.change_relation(&relation, change, &deed, true)?;
                }
            }
            On::AllTables(schemas) | On::AllSequences(schemas) => {
                let sequences = matches!(change.on, On::AllSequences(_));
                for schema in self.schemas_named(schemas)? {
                    let catalog = self.open.catalog.1.clone();
                    for relation in catalog.relations() {
                        let is_sequence = matches!(relation.kind, Kind::Sequence(_));
                        let own = !matches!(relation.kind, Kind::System(_));
                        if relation.namespace == schema && is_sequence == sequences && own {
                            self.change_relation(relation, change, &deed, sequences)?;
                        }
                    }
                }
            }
            On::Schemas(names) => {
                let wanted = wanted(Rights::SCHEMA, "schema")?;
                for name in names {
                    let name = folded(name);
                    let found = self.open.catalog.1.namespace(&name).cloned();
                    let namespace = found.ok_or_else(|| super::no_schema(&name))?;
                    self.change_schema(&namespace, &wanted, &deed)?;
                }
            }
            On::Databases(names) => {
                let wanted = wanted(Rights::DATABASE, "database")?;
                for name in names {
                    check_database(&folded(name))?;
                    self.change_database(&wanted, &deed)?;
                }
            }
            On::Types(names) | On::Domains(names) => {
                let wanted = wanted(Rights::USAGE, "type")?;
                for name in names {
                    if matches!(change.on, On::Domains(_)) {
                        self.check_names_domain(name)?;
                    }
                    self.change_type(name, &wanted, &deed)?;
                }
            }
            On::Routines(kind, all) => {
                wanted(Rights::EXECUTE, kind)?;
                for (name, arguments) in all {
                    let shown = self.routine_of_rights(kind, name, arguments.as_deref())?;
                    deed.leaves(&format!("the {kind} {shown}"))?;
                }
            }
            On::AllRoutines(schemas) => {
                wanted(Rights::EXECUTE, "function")?;
                self.schemas_named(schemas)?;
            }
            On::Languages(names) => {
                wanted(Rights::USAGE, "language")?;
                for name in names {
                    check_language(&folded(name))?;
                }
            }
            On::Tablespaces(names) => {
                wanted(Rights::CREATE, "tablespace")?;
                for name in names {
                    let name = folded(name);
                    if name != "pg_global" {
                        check_tablespace(&name)?;
                    }
                }
            }
            On::Wrappers(names) => return missing("foreign-data wrapper", names),
            On::Servers(names) => return missing("server", names),
            On::LargeObjects(numbers) => {
                let first = numbers.first().map_or("", String::as_str);
                let message = format!("large object {first} does not exist");
                return Err(SqlError::new(sqlstate::UNDEFINED_OBJECT, message));
            }
            On::Parameters => return Err(SqlError::unsupported("rights on parameters")),
            On::Made(_) => return Err(SqlError::internal("default privileges")),
        }
        Ok(CommandTag::plain(if change.give {
            "GRANT"
        } else {
            "REVOKE"
        }))
    }

    /// ALTER DEFAULT PRIVILEGES.
    ///
    /// # Errors
    /// `42704`, `3F000`; `0LP01`; `42501` for roles that the session's is no member of.
    pub(super) fn alter_default_rights(
        &mut self,
        roles: &[Ident],
        schemas: &[Ident],
        change: &RightsChange,
    ) -> Result<CommandTag> {
        let On::Made(made) = change.on else {
            return Err(SqlError::internal("no default privileges"));
        };
        let kind = match made {
            "tables" => DefaultKind::Tables,
            "sequences" => DefaultKind::Sequences,
            "functions" => DefaultKind::Functions,
            "types" => DefaultKind::Types,
            _ => DefaultKind::Schemas,
        };
        let grantees = self.roles_named(&change.grantees)?;
        if change.rights.iter().any(|(_, columns)| !columns.is_empty()) {
            let text = "default privileges cannot be set for columns";
            return Err(SqlError::new(sqlstate::INVALID_GRANT_OPERATION, text));
        }
        let wanted = wanted(change, kind.rights(), kind.word())?;
        let deed = Deed {
            give: change.give,
            option: change.option,
            grantees: &grantees,
            cascade: change.cascade,
        };
        let owners = roles.iter().map(|name| self.role_named(name));
        let mut owners: Vec<Oid> = owners.collect::<Result<_>>()?;
        if owners.is_empty() {
            owners.push(self.own_role()?.oid);
        }
        for owner in owners {
            let catalog = &self.open.rights().1;
            if !catalog.is_member(self.role, owner) {
                let name = catalog.role_by_oid(owner).map(|role| role.name.clone());
                let name = name.unwrap_or_default();
                return Err(denied(format!("must be member of role \"{name}\"")));
            }
            if !schemas.is_empty() && kind == DefaultKind::Schemas {
                let text = "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS";
                return Err(SqlError::new(sqlstate::INVALID_GRANT_OPERATION, text));
            }
            let mut places = self.schemas_named(schemas)?;
            for place in &places {
                self.enter_gated(Gated::Schema, *place, Mode::Write)?;
            }
            if places.is_empty() {
                places.push(0);
            }
            for schema in places {
                let of = AclOf::Default {
                    role: owner,
                    schema,
                    kind,
                };
                let usual = match schema {
                    0 => kind.usual(owner),
                    _ => Vec::new(),
                };
                let before = self.open.catalog.1.acl(of);
                let mut acl = before.map_or_else(|| usual.clone(), <[Grant]>::to_vec);
                deed.apply(&mut acl, wanted.rights, owner, owner)?;
                let is_usual =
                    acl.len() == usual.len() && acl.iter().all(|own| usual.contains(own));
                let kept = (!is_usual).then(|| acl.into());
                self.change(Change::PutAcl(of, kept))?;
            }
        }
        Ok(CommandTag::plain("ALTER DEFAULT PRIVILEGES"))
    }

    /// The oid of a role, which is not everybody.
    ///
    /// # Errors
    /// `42704`.
    pub(super) fn role_named(&self, name: &Ident) -> Result<Oid> {
        let found = self.roles_named(std::slice::from_ref(name))?;
        let mut found = found.into_iter().filter(|role| *role != 0);
        found.next().ok_or_else(|| no_role("public"))
    }

    /// Oids of roles; 0: everybody.
    pub(super) fn roles_named(&self, names: &[Ident]) -> Result<Vec<Oid>> {
        let one = |name: &Ident| {
            let folded = folded(name);
            let plain = name.quote_style.is_none();
            match folded.as_str() {
                "public" => Ok(0),
                "session_user" if plain => Ok(self.session_role()?.oid),
                "current_user" | "current_role" if plain => Ok(self.own_role()?.oid),
                name => Ok(self.role_of(name)?.oid),
            }
        };
        names.iter().map(one).collect()
    }

    fn schemas_named(&self, names: &[Ident]) -> Result<Vec<Oid>> {
        let one = |name: &Ident| {
            let name = folded(name);
            let found = self.open.catalog.1.namespace(&name);
            found
                .map(|found| found.oid)
                .ok_or_else(|| super::no_schema(&name))
        };
        names.iter().map(one).collect()
    }

    fn relation_of_rights(&self, name: &ObjectName) -> Result<Arc<Relation>> {
        self.check_schema(name)?;
        let relation = self.binder().relation(name);
        relation.map_err(SqlError::without_place)
    }

    /// Who gives rights on an object: its owner for whoever may do what that may, otherwise the one of the session's roles that may give most.
    fn giver(&self, acl: &[Grant], owner: Oid, rights: Rights) -> Result<Giver> {
        let catalog = &self.open.rights().1;
        if catalog.owns(self.role, owner) {
            return Ok(Giver {
                grantor: owner,
                may: rights,
            });
        }
        let mut best = Giver {
            grantor: self.own_role()?.oid,
            may: Rights::NONE,
        };
        let mut roles = vec![best.grantor];
        let mine = acl.iter().map(|own| own.grantee);
        roles.extend(mine.filter(|role| *role != 0 && catalog.has_rights_of(self.role, *role)));
        for role in roles {
            let own = acl.iter().filter(|own| own.grantee == role);
            let may = own.fold(Rights::NONE, |sum, own| sum.with(own.grantable));
            let may = may.both(rights);
            if may.bits().count_ones() > best.may.bits().count_ones() {
                best = Giver { grantor: role, may };
            }
        }
        Ok(best)
    }

    /// What of the rights is given or taken.
    ///
    /// # Errors
    /// `42501` for who has no right on the object at all.
    fn allowed(
        &mut self,
        acl: &[Grant],
        whose: &Whose<'_>,
        rights: Rights,
        (all, give): (bool, bool),
    ) -> Result<Giver> {
        let giver = self.giver(acl, whose.owner, rights)?;
        let catalog = &self.open.rights().1;
        if giver.may.is_none() {
            let any =
                |own: &Grant| own.grantee == 0 || catalog.has_rights_of(self.role, own.grantee);
            if !acl.iter().any(any) {
                return Err(denied(format!(
                    "permission denied for {} {}",
                    whose.word, whose.name
                )));
            }
        }
        let (state, word) = match give {
            true => ("01007", "granted"),
            false => ("01006", "revoked"),
        };
        let how = if giver.may.is_none() {
            "no"
        } else if !all && giver.may != rights {
            "not all"
        } else {
            return Ok(giver);
        };
        let done = if give { "were" } else { "could be" };
        let message = format!("{how} privileges {done} {word} for \"{}\"", whose.name);
        self.notices
            .push(Fields::warning(SqlState::of(state), message));
        Ok(giver)
    }

    fn change_relation(
        &mut self,
        relation: &Arc<Relation>,
        change: &RightsChange,
        deed: &Deed<'_>,
        as_sequence: bool,
    ) -> Result<()> {
        if matches!(relation.kind, Kind::System(_)) {
            let message = format!("\"{}\" is a system catalog", relation.name);
            return Err(denied(message));
        }
        check_no_system(relation)?;
        let is_sequence = matches!(relation.kind, Kind::Sequence(_));
        let every = match (is_sequence, as_sequence) {
            (_, true) => Rights::SEQUENCE,
            _ => Rights::TABLE.with(Rights::SEQUENCE),
        };
        let word = if as_sequence { "sequence" } else { "relation" };
        let mut wanted = wanted(change, every, word)?;
        let own = if is_sequence {
            Rights::SEQUENCE
        } else {
            Rights::TABLE
        };
        let strange = wanted.rights.without(own);
        if !wanted.all && !strange.is_none() {
            if !is_sequence {
                let message = format!("invalid privilege type {} for table", strange.name());
                return Err(SqlError::new(sqlstate::INVALID_GRANT_OPERATION, message));
            }
            let message = format!(
                "sequence \"{}\" only supports USAGE, SELECT, and UPDATE privileges",
                relation.name
            );
            let warning = Fields::warning(sqlstate::INVALID_GRANT_OPERATION, message);
            self.notices.push(warning);
        }
        wanted.rights = wanted.rights.both(own);
        let whose = Whose {
            word: super::kind_word(&relation.kind),
            name: &relation.name,
            owner: relation.owner,
        };
        let owner = relation.owner;
        let mut next = Relation::clone(relation);
        let before = self.open.catalog.1.grants(relation);
        if !wanted.rights.is_none() {
            let how = (wanted.all, deed.give);
            let giver = self.allowed(&before, &whose, wanted.rights, how)?;
            let mut acl = before.clone();
            deed.apply(&mut acl, giver.may, giver.grantor, owner)?;
            next.acl = Some(acl);
            if !deed.give {
                let taken = giver.may.both(Rights::COLUMN);
                for (_, acl) in &mut next.column_acls {
                    deed.apply(acl, taken, giver.grantor, owner)?;
                }
            }
        }
        for (rights, columns) in &wanted.columns {
            for column in columns {
                let number = self.column_number(relation, column)?;
                let known = next.column_acls.iter().position(|(own, _)| *own == number);
                let mut acl = match known {
                    Some(at) => next.column_acls.swap_remove(at).1,
                    None => Vec::new(),
                };
                // Who may give it on the whole table may on a column.
                let both = [&before[..], &acl[..]].concat();
                let giver = self.allowed(&both, &whose, *rights, (wanted.all, deed.give))?;
                deed.apply(&mut acl, giver.may, giver.grantor, owner)?;
                next.column_acls.push((number, acl));
            }
        }
        next.column_acls.retain(|(_, acl)| !acl.is_empty());
        next.column_acls.sort_by_key(|(column, _)| *column);
        self.change(Change::PutRelation(Arc::new(next)))
    }

    /// The number of a column of a table or view.
    fn column_number(&self, relation: &Arc<Relation>, name: &str) -> Result<u16> {
        let number = match &relation.kind {
            Kind::Table(table) => {
                let mut columns = table.schema.columns();
                columns
                    .find(|column| *column.name == *name)
                    .map(|column| column.id.0)
            }
            Kind::View(view) => {
                let mut columns = (1..).zip(&view.columns);
                columns
                    .find(|(_, column)| ***column == *name)
                    .map(|(number, _)| number)
            }
            _ => None,
        };
        number.ok_or_else(|| {
            let message = format!(
                "column \"{name}\" of relation \"{}\" does not exist",
                relation.name
            );
            SqlError::new(sqlstate::UNDEFINED_COLUMN, message)
        })
    }

    fn change_schema(
        &mut self,
        namespace: &Arc<Namespace>,
        wanted: &Wanted,
        deed: &Deed<'_>,
    ) -> Result<()> {
        let owner = namespace.owner;
        let mut acl = match &namespace.acl {
            Some(acl) => acl.clone(),
            None => {
                let mut acl = DefaultKind::Schemas.usual(owner);
                if namespace.oid < crate::catalog::FIRST_USER_OID {
                    acl.push(Grant {
                        grantee: 0,
                        grantor: owner,
                        rights: Rights::USAGE,
                        grantable: Rights::NONE,
                    });
                }
                acl
            }
        };
        let whose = Whose {
            word: "schema",
            name: &namespace.name,
            owner: namespace.owner,
        };
        let giver = self.allowed(&acl, &whose, wanted.rights, (wanted.all, deed.give))?;
        deed.apply(&mut acl, giver.may, giver.grantor, owner)?;
        let next = Namespace {
            acl: Some(acl),
            ..Namespace::clone(namespace)
        };
        self.change(Change::PutNamespace(Arc::new(next)))
    }

    fn change_database(&mut self, wanted: &Wanted, deed: &Deed<'_>) -> Result<()> {
        let mut acl = self.open.catalog.1.database_acl();
        let whose = Whose {
            word: "database",
            name: DATABASE,
            owner: FIRST_ROLE_OID,
        };
        let giver = self.allowed(&acl, &whose, wanted.rights, (wanted.all, deed.give))?;
        let before = acl.clone();
        deed.apply(&mut acl, giver.may, giver.grantor, FIRST_ROLE_OID)?;
        if acl == before {
            return Ok(());
        }
        let change = Change::PutAcl(AclOf::Database, Some(acl.into()));
        self.change(change)
    }

    fn change_type(&mut self, name: &ObjectName, wanted: &Wanted, deed: &Deed<'_>) -> Result<()> {
        let found = self.find_type(name)?.ok_or_else(|| no_type(name))?;
        let oid = match found {
            NamedType::Domain(oid) => oid,
            NamedType::Own(ty) if ty.element().is_some() => {
                let text = "cannot set privileges of array types";
                return Err(SqlError::new(sqlstate::INVALID_GRANT_OPERATION, text)
                    .with_hint("Set the privileges of the element type instead."));
            }
            NamedType::Own(ty) => match ty.enum_id() {
                Some(id) => id.oid(),
                None => return deed.leaves(&format!("the type {}", self.forms.name_of(ty))),
            },
        };
        let relation = self.open.catalog.1.relation(oid).cloned();
        let relation = relation.ok_or_else(|| no_type(name))?;
        let mut acl = self.open.catalog.1.grants(&relation);
        let whose = Whose {
            word: "type",
            name: &relation.name,
            owner: relation.owner,
        };
        let giver = self.allowed(&acl, &whose, wanted.rights, (wanted.all, deed.give))?;
        let owner = relation.owner;
        deed.apply(&mut acl, giver.may, giver.grantor, owner)?;
        let next = Relation {
            acl: Some(acl),
            ..Relation::clone(&relation)
        };
        self.change(Change::PutRelation(Arc::new(next)))
    }

    /// Whether somebody may make something of a type.
    ///
    /// # Errors
    /// `42501`.
    pub(super) fn check_type_right(&self, oid: Oid) -> Result<()> {
        let catalog = &self.open.catalog.1;
        let Some(relation) = catalog.relation(oid).filter(|own| own.acl.is_some()) else {
            return Ok(());
        };
        let rights = &self.open.rights().1;
        if rights.allows(self.role, relation, Rights::USAGE)
            || rights.owns(self.role, relation.owner)
        {
            return Ok(());
        }
        let shown = self.type_shown(relation);
        Err(denied(format!("permission denied for type {shown}")))
    }

    /// A routine that rights are given on, as it is shown.
    fn routine_of_rights(
        &mut self,
        kind: &str,
        name: &ObjectName,
        arguments: Option<&[String]>,
    ) -> Result<String> {
        let (schema, base) = object_name(name)?;
        if kind == "procedure" || arguments.is_some() {
            return self.routine_there(kind, name, arguments);
        }
        if let Some(schema) = &schema
            && self.open.catalog.1.namespace(schema).is_none()
        {
            return Err(super::no_schema(schema));
        }
        let catalog = &self.open.catalog.1;
        let found =
            crate::system::functions_named(catalog, &self.search_path, schema.as_deref(), &base);
        match found.len() {
            1 => Ok(base),
            0 => {
                let shown =
                    schema.map_or_else(|| base.clone(), |schema| format!("{schema}.{base}"));
                let message = format!("could not find a {kind} named \"{shown}\"");
                Err(SqlError::new(sqlstate::UNDEFINED_FUNCTION, message))
            }
            _ => {
                let message = format!("{kind} name \"{base}\" is not unique");
                Err(SqlError::new(SqlState::of("42725"), message)
                    .with_hint("Specify the argument list to select the function unambiguously."))
            }
        }
    }
}

impl Deed<'_> {
    /// Of rights that everybody has and that are not kept.
    ///
    /// # Errors
    /// `0A000` for taking them from everybody.
    fn leaves(&self, what: &str) -> Result<()> {
        match !self.give && self.grantees.contains(&0) {
            true => Err(SqlError::unsupported(format!(
                "REVOKE … FROM PUBLIC on {what}"
            ))),
            false => Ok(()),
        }
    }
}

/// The rights that a statement names.
///
/// # Errors
/// `42601` for what is no right, `0LP01` for one that such objects have not.
fn wanted(change: &RightsChange, all: Rights, word: &str) -> Result<Wanted> {
    let invalid = |right: &str, word: &str| {
        let message = format!("invalid privilege type {} for {word}", right.to_uppercase());
        SqlError::new(sqlstate::INVALID_GRANT_OPERATION, message)
    };
    let mut found = Wanted {
        rights: Rights::NONE,
        all: false,
        columns: Vec::new(),
    };
    for (name, columns) in &change.rights {
        let columns: Vec<String> = columns.iter().map(folded).collect();
        let is_all = name == "all";
        let right = match is_all {
            true if columns.is_empty() => all,
            true => Rights::COLUMN,
            false => Rights::named(name).ok_or_else(|| {
                SqlError::syntax(format!("unrecognized privilege type \"{name}\""))
            })?,
        };
        found.all |= is_all;
        if columns.is_empty() {
            if !all.contains(right) {
                return Err(invalid(right.name(), word));
            }
            found.rights = found.rights.with(right);
            continue;
        }
        if word != "relation" {
            let text = "column privileges are only valid for relations";
            return Err(SqlError::new(sqlstate::INVALID_GRANT_OPERATION, text));
        }
        if !Rights::COLUMN.contains(right) {
            return Err(invalid(right.name(), "column"));
        }
        found.columns.push((right, columns));
    }
    Ok(found)
}

fn missing<T>(kind: &str, names: &[Ident]) -> Result<T> {
    let name = names.first().map(folded).unwrap_or_default();
    let message = format!("{kind} \"{name}\" does not exist");
    Err(SqlError::new(sqlstate::UNDEFINED_OBJECT, message))
}

/// # Errors
/// `42704`; `42809` for a language that only superusers use.
fn check_language(name: &str) -> Result<()> {
    match name {
        "sql" | "plpgsql" => Ok(()),
        "c" | "internal" => {
            let message = format!("language \"{name}\" is not trusted");
            let detail = "GRANT and REVOKE are not allowed on untrusted languages, because only superusers can use untrusted languages.";
            Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message).with_detail(detail))
        }
        name => {
            let message = format!("language \"{name}\" does not exist");
            Err(SqlError::new(sqlstate::UNDEFINED_OBJECT, message))
        }
    }
}
