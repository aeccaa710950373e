//! What a role owns and has rights on: DROP OWNED, REASSIGN OWNED, and what keeps it from being dropped. GRANT and REVOKE of roles.

use super::Ddl;
use super::acl::without;
use super::dependency::Object;
use super::role::denied;
use crate::bind::folded;
use crate::catalog::{
    AclOf, Change, DefaultKind, Extension, Gated, Kind, Mode, Namespace, Oid, Relation,
};
use crate::error::{Fields, Result, SqlError};
use crate::parse::Definition;
use crate::roles::{Grant, Role};
use crate::sqlstate;
use crate::wire::CommandTag;
use sqlparser::ast::Ident;
use std::sync::Arc;

/// Whether rights are those of a role, or were given by it.
fn names(acl: &[Grant], role: Oid) -> bool {
    acl.iter()
        .any(|own| own.grantee == role || own.grantor == role)
}

impl Ddl<'_> {
    /// Runs a definition that is kept in its words until now.
    pub(super) fn run_said(&mut self, said: &str) -> Result<CommandTag> {
        match crate::parse::definition(said)? {
            Definition::Cluster { table, index } => {
                self.cluster_table(table.as_ref(), index.as_ref())
            }
            Definition::Rights(change) => self.change_rights(&change),
            Definition::Members {
                give,
                roles,
                members,
                admin,
                grantor,
            } => {
                // Who takes a membership away does so whoever gave it.
                let grantor = grantor.as_ref().filter(|_| give);
                let grantor = self.grantor_of_members(grantor)?;
                self.change_members(give, &roles, &members, (admin, grantor))
            }
            Definition::Defaults {
                roles,
                schemas,
                change,
            } => self.alter_default_rights(&roles, &schemas, &change),
            Definition::DropOwned { roles, cascade } => self.drop_owned(&roles, cascade),
            Definition::ReassignOwned { roles, to } => self.reassign_owned(&roles, &to),
            Definition::DatabaseOwner { database, to } => self.give_database(&database, &to),
            Definition::RoleName { role, to } => self.rename_role(&folded(&role), &to),
            Definition::DatabaseName { database, to } => self.rename_database(&database, &to),
        }
    }

    /// Who is kept as the one that made a role a member of another.
    ///
    /// # Errors
    /// `42704` for a role that is not there.
    fn grantor_of_members(&self, said: Option<&Ident>) -> Result<Oid> {
        let own = self.own_role()?.oid;
        let Some(said) = said else {
            return Ok(own);
        };
        self.role_named(said)
    }

    fn change_members(
        &mut self,
        give: bool,
        roles: &[Ident],
        members: &[Ident],
        (admin, grantor): (bool, Oid),
    ) -> Result<CommandTag> {
        let members = self.roles_named(members)?;
        for group in self.roles_named(roles)? {
            let group = self.member(group)?;
            for member in &members {
                let mut member = self.member(*member)?;
                let known = member.member_of.iter();
                let known = known.clone().find(|one| one.role == group.oid).copied();
                let (group_name, name) = (&group.name, &member.name);
                if give {
                    let told = known.is_some_and(|known| known.admin || !admin);
                    let message =
                        format!("role \"{name}\" is already a member of role \"{group_name}\"");
                    self.join(&mut member, &group, (admin, grantor))?;
                    if told {
                        self.notices.push(Fields::notice(message));
                        continue;
                    }
                } else {
                    self.check_admin(&group)?;
                    if known.is_none() {
                        let message =
                            format!("role \"{name}\" is not a member of role \"{group_name}\"");
                        let warning = Fields::warning(sqlstate::WARNING, message);
                        self.notices.push(warning);
                        continue;
                    }
                    match admin {
                        true => {
                            let mut all = member.member_of.iter_mut();
                            if let Some(own) = all.find(|own| own.role == group.oid) {
                                own.admin = false;
                            }
                        }
                        false => member.member_of.retain(|own| own.role != group.oid),
                    }
                }
                self.put_role(member)?;
            }
        }
        Ok(CommandTag::plain(if give {
            "GRANT ROLE"
        } else {
            "REVOKE ROLE"
        }))
    }

    fn member(&self, oid: Oid) -> Result<Role> {
        let found = self.roles().role_by_oid(oid);
        let found = found.ok_or_else(|| super::role::no_role("public"))?;
        Ok(Role::clone(found))
    }

    /// # Errors
    /// `42501` for who may not say who is a member of a role.
    pub(super) fn check_admin(&self, group: &Role) -> Result<()> {
        let own = self.own_role()?;
        let is_admin = self.open.rights().1.is_admin(self.role, group.oid);
        if own.superuser || is_admin || (own.create_role && !group.superuser) {
            return Ok(());
        }
        Err(denied(if group.superuser {
            "must be superuser to alter superusers".to_owned()
        } else {
            format!("must have admin option on role \"{}\"", group.name)
        }))
    }

    /// The roles of DROP OWNED and REASSIGN OWNED.
    fn owners(&self, names: &[Ident], word: &str) -> Result<Vec<Oid>> {
        let roles = names.iter().map(|name| self.role_named(name));
        let roles: Vec<Oid> = roles.collect::<Result<_>>()?;
        for role in &roles {
            if *role == crate::database::FIRST_ROLE_OID {
                let name = crate::database::FIRST_ROLE;
                let done = match word {
                    "drop" => "drop objects owned by role",
                    _ => "reassign ownership of objects owned by role",
                };
                let message = format!(
                    "cannot {done} {name} because they are required by the database system"
                );
                let state = sqlstate::DEPENDENT_OBJECTS_STILL_EXIST;
                return Err(SqlError::new(state, message));
            }
            if !self.open.rights().1.has_rights_of(self.role, *role) {
                return Err(denied(format!("permission denied to {word} objects")));
            }
        }
        Ok(roles)
    }

    fn drop_owned(&mut self, roles: &[Ident], cascade: bool) -> Result<CommandTag> {
        let roles = self.owners(roles, "drop")?;
        for role in &roles {
            self.forget_rights(*role)?;
        }
        let mut objects = Vec::new();
        for role in &roles {
            objects.extend(self.objects_of(*role)?);
        }
        self.let_go(&objects, cascade, None)?;
        for object in objects {
            match object {
                Object::Schema(namespace) => self.change(Change::DropNamespace(namespace.oid))?,
                Object::Relation(relation) => self.discard(&relation)?,
                Object::Extension(extension) => self.discard_extension(&extension)?,
                _ => {}
            }
        }
        Ok(CommandTag::plain("DROP OWNED"))
    }

    /// What a role owns, each held alone. The sequence of an identity goes with its column.
    fn objects_of(&mut self, role: Oid) -> Result<Vec<Object>> {
        let catalog = self.open.catalog.1.clone();
        let mut objects = Vec::new();
        let relations = catalog.relations();
        let types = catalog.user_types();
        for relation in relations.iter().chain(&types) {
            if relation.owner != role || matches!(relation.kind, Kind::System(_)) {
                continue;
            }
            let of_table = match &relation.kind {
                Kind::Sequence(own) => catalog.relation(own.owner.0),
                _ => None,
            };
            if of_table.is_some_and(|table| table.owner == relation.owner) {
                continue;
            }
            objects.push(Object::Relation(self.alone(relation)?));
        }
        for namespace in catalog.namespaces() {
            if namespace.owner == role && !catalog.is_temporary(namespace.oid) {
                self.enter_gated(Gated::Schema, namespace.oid, Mode::Alone)?;
                objects.push(Object::Schema(namespace.clone()));
            }
        }
        for extension in catalog.extensions() {
            if extension.owner == role {
                self.enter_gated(Gated::Extension, extension.oid, Mode::Alone)?;
                objects.push(Object::Extension(extension.clone()));
            }
        }
        Ok(objects)
    }

    /// Takes the rights of a role from it, and what it has said of the objects that it makes.
    fn forget_rights(&mut self, role: Oid) -> Result<()> {
        let catalog = self.open.catalog.1.clone();
        let relations = catalog.relations();
        let types = catalog.user_types();
        for relation in relations.iter().chain(&types) {
            let owner = relation.owner;
            let own = relation.acl.as_deref().unwrap_or_default();
            let columns = relation.column_acls.iter();
            let of_columns = columns.clone().any(|(_, acl)| names(acl, role));
            if owner == role || !names(own, role) && !of_columns {
                continue;
            }
            let mut column_acls: Vec<_> = columns
                .map(|(column, acl)| (*column, without(acl, own, role, owner)))
                .collect();
            column_acls.retain(|(_, acl)| !acl.is_empty());
            let next = Relation {
                acl: (relation.acl.as_deref()).map(|acl| without(acl, &[], role, owner)),
                column_acls,
                ..Relation::clone(relation)
            };
            self.change(Change::PutRelation(Arc::new(next)))?;
        }
        for namespace in catalog.namespaces() {
            let own = namespace.acl.as_deref().unwrap_or_default();
            let owner = namespace.owner;
            if owner == role || !names(own, role) {
                continue;
            }
            let next = Namespace {
                acl: Some(without(own, &[], role, owner)),
                ..Namespace::clone(namespace)
            };
            self.change(Change::PutNamespace(Arc::new(next)))?;
        }
        for (of, acl) in catalog.acls() {
            let mine = matches!(of, AclOf::Default { role: own, .. } if own == role);
            if !mine && !names(acl, role) {
                continue;
            }
            let owner = match of {
                AclOf::Database => crate::database::FIRST_ROLE_OID,
                AclOf::Default { role, .. } => role,
            };
            let kept = without(acl, &[], role, owner);
            let usual = match of {
                AclOf::Default {
                    role: own,
                    schema: 0,
                    kind,
                } => kind.usual(own),
                _ => Vec::new(),
            };
            let kept = (!mine && kept != usual).then(|| kept.into());
            self.change(Change::PutAcl(of, kept))?;
        }
        Ok(())
    }

    fn reassign_owned(&mut self, roles: &[Ident], to: &Ident) -> Result<CommandTag> {
        let roles = self.owners(roles, "reassign")?;
        let to = self.roles_named(std::slice::from_ref(to))?;
        let to = self.member(to.first().copied().unwrap_or(0))?;
        if !self.open.rights().1.has_rights_of(self.role, to.oid) {
            return Err(denied("permission denied to reassign objects"));
        }
        for role in roles {
            let catalog = self.open.catalog.1.clone();
            let relations = catalog.relations();
            let types = catalog.user_types();
            for relation in relations.iter().chain(&types) {
                if relation.owner == role && !matches!(relation.kind, Kind::System(_)) {
                    let relation = self.alone(relation)?;
                    self.give(&relation, to.oid)?;
                }
            }
            for namespace in catalog.namespaces() {
                if namespace.owner == role && !catalog.is_temporary(namespace.oid) {
                    self.give_schema(namespace, to.oid)?;
                }
            }
            for extension in catalog.extensions() {
                if extension.owner == role {
                    let next = Extension {
                        owner: to.oid,
                        ..Extension::clone(extension)
                    };
                    let change = Change::PutExtension(Arc::new(next));
                    self.change(change)?;
                }
            }
        }
        Ok(CommandTag::plain("REASSIGN OWNED"))
    }

    /// What keeps a role from being dropped, as PostgreSQL tells it: what it owns, what it has rights on, whatever the snapshot.
    pub(super) fn needs_role(&self, role: &Role) -> Vec<String> {
        let catalog = &self.open.rights().1;
        let mut lines = Vec::new();
        let mut tell = |what: String, owner: Oid, acls: &[&[Grant]]| {
            if owner == role.oid {
                lines.push(format!("owner of {what}"));
            } else if acls.iter().any(|acl| names(acl, role.oid)) {
                lines.push(format!("privileges for {what}"));
            }
        };
        tell(
            format!("database {}", crate::database::DATABASE),
            0,
            &[catalog.acl(AclOf::Database).unwrap_or_default()],
        );
        for namespace in catalog.namespaces() {
            let acl = namespace.acl.as_deref().unwrap_or_default();
            let name = crate::names::quoted(&namespace.name);
            tell(format!("schema {name}"), namespace.owner, &[acl]);
        }
        let relations = catalog.relations();
        let types = catalog.user_types();
        for relation in relations.iter().chain(&types) {
            let described = self.described(relation);
            let acl = relation.acl.as_deref().unwrap_or_default();
            tell(described.clone(), relation.owner, &[acl]);
            for (column, acl) in &relation.column_acls {
                let column = vellum_row::ColumnId(*column);
                tell(self.column_described(relation, column), 0, &[acl]);
            }
        }
        for extension in catalog.extensions() {
            let name = crate::names::quoted(&extension.name);
            tell(format!("extension {name}"), extension.owner, &[]);
        }
        for (of, acl) in catalog.acls() {
            let AclOf::Default {
                role: own,
                schema,
                kind,
            } = of
            else {
                continue;
            };
            let word = match kind {
                DefaultKind::Tables => "relations",
                DefaultKind::Sequences => "sequences",
                DefaultKind::Functions => "functions",
                DefaultKind::Types => "types",
                DefaultKind::Schemas => "schemas",
            };
            let owner = catalog.role_name(own);
            let place = match schema {
                0 => String::new(),
                schema => format!(" in schema {}", catalog.namespace_name(schema)),
            };
            let what = format!("default privileges on new {word} belonging to role {owner}{place}");
            tell(what, own, &[acl]);
        }
        lines
    }
}
