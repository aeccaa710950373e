//! The relation catalog: schemas and relations, as rows of engine tables and as an immutable image in memory.
//!
//! Every transaction works with one image ([`Catalog`]), which belongs to its snapshot: what it names is visible there.
//! DDL makes a new image from it, for this transaction alone, and writes the rows; the commit publishes what was
//! changed to everybody else (`publish`).
//!
//! Invariants:
//! - C1 An image never changes. No number of its versions is ever given to another change while the database is open, so a
//!   statement that was compiled for it is good as long as those are the same that its session can see ([`Version`]).
//! - C2 A published image and the engine's committed catalog rows change together, under one lock that begins of
//!   transactions look at (`publish`): a snapshot and the image taken with it agree.
//! - C3 Oids are never used twice (`oids`).
//! - C4 What tables refer to is there (`whole`).
//!
//! Not here: who may change what when (`gate`), the statements (`ddl`), what queries see of it (`system`).

mod acls;
mod built_in_roles;
mod codec;
mod collation;
mod comments;
mod domain;
mod extension;
mod gate;
mod kept_settings;
mod method;
mod oids;
mod publish;
mod relation;
mod role_uses;
mod runtime;
mod store;
mod whole;

pub(crate) use acls::{AclOf, DefaultKind};
pub(crate) use built_in_roles::{READ_ALL_STATS, SIGNAL_BACKEND, is_built_in};
pub(crate) use collation::Collation;
pub(crate) use comments::Comment;
pub(crate) use domain::{DOMAINS_MAX, Domain};
pub(crate) use extension::{Extension, PLPGSQL_OID};
pub(crate) use gate::{Gate, Gated, GatesByOid, Mode, Next};
pub(crate) use kept_settings::KeptFor;
pub(crate) use method::{CLASSES, Method, OperatorClass};
pub(crate) use oids::{
    Asking, Oids, check as check_sequences, next_value, remove, set_value, settle,
    state as sequence_state, sweep,
};
pub(crate) use publish::Published;
pub(crate) use relation::{
    Action, Check, CheckOption, Default, ForeignKey, Identity, Index, IndexColumn, IndexKey,
    KeyCollation, Kind, Marks, Oid, Relation, ReplicaIdentity, SequenceDefinition, Storage,
    SwitchedOff, Table, Timing, View, boolean,
};
pub(crate) use runtime::{Runtime, Taken};
pub(crate) use store::Store;

use crate::database::FIRST_ROLE_OID;
use crate::error::{Result, SqlError};
use crate::roles::{Grant, Rights, Role};
use crate::sqlstate;
use std::sync::Arc;
use vellum_base::maps::HashMap;
use vellum_row::{DomainName, EnumId, EnumType, UserTypes};

/// What no role can be called.
pub(crate) const NOBODY: &str = "";
/// Oid of `pg_catalog`.
pub(crate) const PG_CATALOG: Oid = 11;
/// Oid of `public`.
pub(crate) const PUBLIC: Oid = 2200;
/// Oid of `information_schema`.
pub(crate) const INFORMATION_SCHEMA: Oid = 13000;
/// The first oid of what users make.
pub(crate) const FIRST_USER_OID: Oid = 16384;

/// A schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Namespace {
    pub oid: Oid,
    pub name: Box<str>,
    /// The role that it belongs to.
    pub owner: Oid,
    /// Rights on it; `None`: those that its owner has.
    pub acl: Option<Vec<Grant>>,
}

/// What a statement of a session was compiled for (C1): the last change of what all sessions see, and the last one of the session's own
/// schema of temporary relations. Those of other sessions are none of its business: names that lead there are refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Version {
    common: u64,
    own: u64,
}

/// An image of the catalog.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    /// The last change that was not of a temporary relation alone.
    common: u64,
    /// The last one of these in the published image that this one was made from.
    base: u64,
    /// By schema of temporary relations: the last change in it.
    own: HashMap<Oid, u64>,
    namespaces: HashMap<Oid, Arc<Namespace>>,
    relations: HashMap<Oid, Arc<Relation>>,
    /// Relations and indexes by schema and name; of an index the oid is its table's.
    names: HashMap<(Oid, Box<str>), Named>,
    /// Types by schema and name.
    type_names: HashMap<(Oid, Box<str>), Oid>,
    /// What the forms of their values depend on.
    types: Arc<UserTypes>,
    roles: HashMap<Oid, Arc<Role>>,
    comments: comments::Comments,
    /// By name.
    extensions: extension::Extensions,
    kept_settings: kept_settings::KeptSettings,
    acls: acls::Acls,
}

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Named {
    /// A table, view or sequence.
    Relation(Oid),
    /// An index of a table.
    Index { table: Oid, index: Oid },
}

/// A change of the catalog.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    PutNamespace(Arc<Namespace>),
    DropNamespace(Oid),
    /// Adds or replaces.
    PutRelation(Arc<Relation>),
    DropRelation(Oid),
    /// Adds or replaces.
    PutRole(Arc<Role>),
    /// A role as it was, and as it is under another name.
    RenameRole(Arc<Role>, Arc<Role>),
    DropRole(Arc<Role>),
    /// Adds, replaces or takes away.
    PutComment(Comment),
    /// Replaces.
    PutSettings(KeptFor, kept_settings::Pairs),
    /// Adds or replaces.
    PutExtension(Arc<Extension>),
    DropExtension(Arc<Extension>),
    /// Adds or replaces; `None`: as if nothing were said.
    PutAcl(AclOf, Option<Arc<[Grant]>>),
}

impl Change {
    /// The change as others see it once it has committed: labels that were added can be used.
    fn committed(&self) -> std::borrow::Cow<'_, Self> {
        use std::borrow::Cow;
        let Self::PutRelation(relation) = self else {
            return Cow::Borrowed(self);
        };
        let Kind::Enum(labels) = &relation.kind else {
            return Cow::Borrowed(self);
        };
        let mut labels = labels.to_vec();
        labels.iter_mut().for_each(|label| label.fresh = false);
        let relation = Relation {
            kind: Kind::Enum(labels.into()),
            ..Relation::clone(relation)
        };
        Cow::Owned(Self::PutRelation(Arc::new(relation)))
    }
}

impl Catalog {
    /// What a session's schema of temporary relations is called by itself.
    pub const TEMPORARY: &str = "pg_temp";
    /// What the names of these schemas begin with.
    pub const TEMPORARY_PREFIX: &str = "pg_temp_";

    /// An image that has the system relations and nothing else.
    pub fn of_system(version: u64) -> Self {
        let mut catalog = Self {
            common: version,
            ..Self::default()
        };
        for definition in crate::system::RELATIONS.iter() {
            let relation = Relation {
                oid: definition.oid,
                namespace: definition.namespace,
                name: definition.name.into(),
                owner: FIRST_ROLE_OID,
                generation: 0,
                runtime: Arc::default(),
                acl: None,
                column_acls: Vec::new(),
                kind: Kind::System(definition),
            };
            catalog.remember(&Arc::new(relation));
        }
        catalog.apply(&Change::PutExtension(Arc::new(Extension::plpgsql())));
        for role in built_in_roles::built_in_roles() {
            catalog.apply(&Change::PutRole(Arc::new(role)));
        }
        catalog
    }

    /// The image with one more change.
    pub fn with(&self, change: &Change, version: u64) -> Self {
        let mut next = self.clone();
        next.advance(change, version);
        next
    }

    /// Applies a change in place, under a number that no other image has.
    pub fn advance(&mut self, change: &Change, version: u64) {
        match self.temporary_change(change) {
            Some(schema) => drop(self.own.insert(schema, version)),
            None => self.common = version,
        }
        if let Change::DropNamespace(oid) = change {
            self.own.remove(oid);
        }
        self.apply(change);
    }

    /// What others have committed in it, but for temporary relations: images with the same number differ by what a transaction has changed itself.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// The image with all that a transaction has changed, under a number that no other image has.
    pub fn with_all(&self, changes: &[Change], version: u64) -> Self {
        let mut next = self.clone();
        for change in changes {
            next.advance(change, version);
        }
        next
    }

    /// What statements of a session are compiled for that has this schema of temporary relations.
    pub fn version(&self, own: Option<Oid>) -> Version {
        let own = own.and_then(|schema| self.own.get(&schema));
        Version {
            common: self.common,
            own: own.copied().unwrap_or(0),
        }
    }

    /// The schema of temporary relations that a change stays in.
    fn temporary_change(&self, change: &Change) -> Option<Oid> {
        let place = |oid: &Oid| self.relation(*oid).map(|relation| relation.namespace);
        let schema = match change {
            Change::PutNamespace(namespace) => {
                let own = namespace.name.starts_with(Self::TEMPORARY_PREFIX);
                return own.then_some(namespace.oid);
            }
            Change::DropNamespace(oid) => Some(*oid),
            Change::PutRelation(relation) => {
                let before = place(&relation.oid).unwrap_or(relation.namespace);
                (before == relation.namespace).then_some(before)
            }
            Change::DropRelation(oid) => place(oid),
            Change::PutRole(_)
            | Change::RenameRole(..)
            | Change::DropRole(_)
            | Change::PutComment(_)
            | Change::PutSettings(..)
            | Change::PutExtension(_)
            | Change::DropExtension(_)
            | Change::PutAcl(..) => None,
        };
        schema.filter(|schema| self.is_temporary(*schema))
    }

    /// Applies a change in place, of an image that nobody has seen yet.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::PutNamespace(namespace) => {
                self.namespaces.insert(namespace.oid, namespace.clone());
            }
            Change::DropNamespace(oid) => {
                self.namespaces.remove(oid);
                self.comments.remove(&(*oid, 0));
                self.acls.retain(|of, _| !of.is_in_schema(*oid));
            }
            Change::PutRelation(relation) => {
                self.forget_comments(relation.oid, Some(relation));
                self.forget(relation.oid);
                self.remember(relation);
            }
            Change::DropRelation(oid) => {
                self.forget_comments(*oid, None);
                self.forget(*oid);
            }
            Change::PutComment(comment) => {
                let key = (comment.object, comment.column);
                match &comment.text {
                    Some(text) => self.comments.insert(key, text.clone()),
                    None => self.comments.remove(&key),
                };
            }
            Change::PutSettings(of, pairs) => {
                match pairs.is_empty() {
                    true => self.kept_settings.remove(of),
                    false => self.kept_settings.insert(*of, pairs.clone()),
                };
            }
            Change::PutAcl(of, acl) => {
                match acl {
                    Some(acl) => self.acls.insert(*of, acl.clone()),
                    None => self.acls.remove(of),
                };
            }
            Change::PutExtension(extension) => {
                let name = extension.name.clone();
                self.extensions.insert(name, extension.clone());
            }
            Change::DropExtension(extension) => {
                self.extensions.remove(&extension.name);
                self.comments.remove(&(extension.oid, 0));
            }
            Change::PutRole(role) | Change::RenameRole(_, role) => {
                self.roles.insert(role.oid, role.clone());
            }
            Change::DropRole(role) => {
                self.roles.remove(&role.oid);
                self.comments.remove(&(role.oid, 0));
            }
        }
    }

    fn forget_comments(&mut self, oid: Oid, next: Option<&Relation>) {
        if let Some(before) = self.relations.get(&oid) {
            for key in self.comments_lost(before, next) {
                self.comments.remove(&key);
            }
        }
    }

    fn forget(&mut self, oid: Oid) {
        let Some(old) = self.relations.remove(&oid) else {
            return;
        };
        if old.is_type() {
            self.type_names.remove(&(old.namespace, old.name.clone()));
            Arc::make_mut(&mut self.types).remove(oid);
            return;
        }
        self.names.remove(&(old.namespace, old.name.clone()));
        if let Kind::Table(table) = &old.kind {
            for index in &table.indexes {
                self.names.remove(&(old.namespace, index.name.clone()));
            }
        }
    }

    fn remember(&mut self, relation: &Arc<Relation>) {
        let oid = relation.oid;
        let key = (relation.namespace, relation.name.clone());
        if let Kind::Domain(_) = relation.kind {
            let schema = crate::names::quoted(self.namespace_name(relation.namespace));
            let own = DomainName {
                oid,
                schema: (relation.namespace, schema.into()),
                name: crate::names::quoted(&relation.name).into(),
            };
            self.type_names.insert(key, oid);
            Arc::make_mut(&mut self.types).put_domain(Arc::new(own));
            self.relations.insert(oid, relation.clone());
            return;
        }
        if let Some(own) = self.enum_type(relation) {
            self.type_names.insert(key, oid);
            Arc::make_mut(&mut self.types).put(Arc::new(own));
            self.relations.insert(oid, relation.clone());
            return;
        }
        self.names.insert(key, Named::Relation(oid));
        if let Kind::Table(table) = &relation.kind {
            for index in &table.indexes {
                let key = (relation.namespace, index.name.clone());
                let named = Named::Index {
                    table: oid,
                    index: index.oid,
                };
                self.names.insert(key, named);
            }
        }
        self.relations.insert(oid, relation.clone());
    }

    /// What the forms of an enum's values depend on.
    fn enum_type(&self, relation: &Relation) -> Option<EnumType> {
        let Kind::Enum(labels) = &relation.kind else {
            return None;
        };
        let schema = crate::names::quoted(self.namespace_name(relation.namespace));
        Some(EnumType {
            id: EnumId::of(relation.oid)?,
            schema: (relation.namespace, schema.into()),
            name: crate::names::quoted(&relation.name).into(),
            labels: labels.to_vec(),
        })
    }

    /// The schema of this name.
    pub fn namespace(&self, name: &str) -> Option<&Arc<Namespace>> {
        self.namespaces
            .values()
            .find(|namespace| &*namespace.name == name)
    }

    /// The schema with this oid.
    pub fn namespace_by_oid(&self, oid: Oid) -> Option<&Arc<Namespace>> {
        self.namespaces.get(&oid)
    }

    /// All schemas, by oid.
    pub fn namespaces(&self) -> Vec<&Arc<Namespace>> {
        let mut all: Vec<_> = self.namespaces.values().collect();
        all.sort_by_key(|namespace| namespace.oid);
        all
    }

    /// The name of a schema, for messages.
    pub fn namespace_name(&self, oid: Oid) -> &str {
        self.namespaces
            .get(&oid)
            .map_or("", |namespace| &namespace.name)
    }

    /// Whether a schema is some session's for its temporary relations.
    pub fn is_temporary(&self, namespace: Oid) -> bool {
        let name = self.namespace_name(namespace);
        name.starts_with(Self::TEMPORARY_PREFIX)
    }

    /// The schema of a name in a statement, whose session's own one for temporary relations is in its search path.
    pub fn schema_named(&self, name: &str, search_path: &[Oid]) -> Option<Oid> {
        if name == Self::TEMPORARY {
            let mut path = search_path.iter().copied();
            return path.find(|oid| self.is_temporary(*oid));
        }
        self.namespace(name).map(|namespace| namespace.oid)
    }

    /// What a name stands for in a schema.
    pub fn named(&self, namespace: Oid, name: &str) -> Option<Named> {
        // The key owns its name: a look-up happens when a statement is compiled, not when it runs.
        self.names.get(&(namespace, name.into())).copied()
    }

    /// The type of this name in a schema.
    pub fn type_named(&self, namespace: Oid, name: &str) -> Option<&Arc<Relation>> {
        let oid = self.type_names.get(&(namespace, name.into()))?;
        self.relations.get(oid)
    }

    /// What the forms of values of users' types depend on.
    pub fn types(&self) -> &Arc<UserTypes> {
        &self.types
    }

    /// Whether a type with this id is here. Who binds without a catalog, with an image that has no relation at all, takes a text's word for it (P1 of `rows/part`).
    pub fn may_have_type(&self, id: EnumId) -> bool {
        self.types.get(id).is_some() || self.relations.is_empty()
    }

    /// The types that users have made, by oid.
    pub fn user_types(&self) -> Vec<&Arc<Relation>> {
        let mut all: Vec<_> = self.relations.values().collect();
        all.retain(|relation| relation.is_type());
        all.sort_by_key(|relation| relation.oid);
        all
    }

    /// The relation, or type, with this oid.
    pub fn relation(&self, oid: Oid) -> Option<&Arc<Relation>> {
        self.relations.get(&oid)
    }

    /// The index with this oid, and its table.
    pub fn index(&self, oid: Oid) -> Option<(&Arc<Relation>, &Index)> {
        self.relations.values().find_map(|relation| {
            let mut indexes = relation.table()?.indexes.iter();
            let index = indexes.find(|index| index.oid == oid)?;
            Some((relation, &**index))
        })
    }

    /// Schema and name of a relation or an index.
    pub fn name_of(&self, oid: Oid) -> Option<(Oid, &str)> {
        if let Some(relation) = self.relation(oid).filter(|one| !one.is_type()) {
            return Some((relation.namespace, &relation.name));
        }
        let (relation, index) = self.index(oid)?;
        Some((relation.namespace, &index.name))
    }

    /// All roles, by oid.
    pub fn roles(&self) -> impl Iterator<Item = &Arc<Role>> {
        let mut all: Vec<_> = self.roles.values().collect();
        all.sort_by_key(|role| role.oid);
        all.into_iter()
    }

    /// The role of a name.
    pub fn role(&self, name: &str) -> Option<&Arc<Role>> {
        self.roles.values().find(|role| role.name == name)
    }

    /// The role with this oid.
    pub fn role_by_oid(&self, oid: Oid) -> Option<&Arc<Role>> {
        self.roles.get(&oid)
    }

    /// The name of a role, as it is shown; that of no role for one that is gone.
    pub fn role_name(&self, oid: Oid) -> &str {
        self.roles.get(&oid).map_or(NOBODY, |role| &role.name)
    }

    /// Whether a role may do anything; one that is gone may not.
    pub fn is_superuser(&self, role: Oid) -> bool {
        self.roles.get(&role).is_some_and(|role| role.superuser)
    }

    /// Whether a role belongs to another one: it is that role, one of its members, directly or by way of others, or a superuser. So it may become that role (SET
    /// ROLE); what it may do without is what [`Self::has_rights_of`] tells.
    pub fn is_member(&self, own: Oid, other: Oid) -> bool {
        self.reaches(own, other, |_| true)
    }

    /// Whether a role has another one's rights without becoming it: as [`Self::is_member`], but a role that is NOINHERIT has none of those that it is a member of.
    pub fn has_rights_of(&self, own: Oid, other: Oid) -> bool {
        self.reaches(own, other, |role| role.inherit)
    }

    /// Whether a role may make others members of one: it, or a role that it belongs to, was made a member WITH ADMIN OPTION.
    pub fn is_admin(&self, own: Oid, other: Oid) -> bool {
        let admin = |role: &Role| {
            let mut memberships = role.member_of.iter();
            memberships.any(|membership| membership.role == other && membership.admin)
        };
        let mut admins = self.roles.values().filter(|role| admin(role));
        self.is_superuser(own) || admins.any(|role| self.is_member(own, role.oid))
    }

    /// Whether memberships lead from a role to another one, where they are followed only from roles that `passes` says yes to.
    fn reaches(&self, own: Oid, other: Oid, passes: impl Fn(&Role) -> bool) -> bool {
        let Some(role) = self.roles.get(&own) else {
            return false;
        };
        let mut seen = vec![role.oid];
        let mut at = 0;
        while let Some(oid) = seen.get(at) {
            at += 1;
            if *oid == other {
                return true;
            }
            let found = self.roles.get(oid).filter(|role| passes(role));
            for membership in found.map_or(&[][..], |role| &role.member_of) {
                if !seen.contains(&membership.role) {
                    seen.push(membership.role);
                }
            }
        }
        role.superuser
    }

    /// Whether a role may do with an object what its owner may.
    pub fn owns(&self, role: Oid, owner: Oid) -> bool {
        self.has_rights_of(role, owner)
    }

    /// Rights on a relation: those that were given, or what its owner has.
    pub fn grants(&self, relation: &Relation) -> Vec<Grant> {
        if let Some(acl) = &relation.acl {
            return acl.clone();
        }
        DefaultKind::of(&relation.kind).usual(relation.owner)
    }

    /// Rights on a column alone.
    pub fn column_grants<'r>(&self, relation: &'r Relation, column: u16) -> &'r [Grant] {
        let mut all = relation.column_acls.iter();
        all.find(|(own, _)| *own == column)
            .map_or(&[], |(_, acl)| acl)
    }

    /// Whether a role has a right on a column, or on the relation.
    pub fn allows_column(
        &self,
        role: Oid,
        relation: &Relation,
        column: u16,
        right: Rights,
    ) -> bool {
        let grants = self.column_grants(relation, column);
        let mut fitting = grants.iter().filter(|grant| grant.rights.contains(right));
        fitting.any(|grant| grant.grantee == 0 || self.has_rights_of(role, grant.grantee))
            || self.allows(role, relation, right)
    }

    /// Whether a role has a right on a relation. System relations are there to be read.
    pub fn allows(&self, role: Oid, relation: &Relation, right: Rights) -> bool {
        if self.is_superuser(role) {
            return true;
        }
        if matches!(relation.kind, Kind::System(_)) {
            return right == Rights::SELECT;
        }
        let grants = self.grants(relation);
        grants.iter().any(|grant| {
            grant.rights.contains(right)
                && (grant.grantee == 0 || self.has_rights_of(role, grant.grantee))
        }) || match right {
            Rights::SELECT => self.has_rights_of(role, built_in_roles::READ_ALL_DATA),
            Rights::INSERT | Rights::UPDATE | Rights::DELETE => {
                self.has_rights_of(role, built_in_roles::WRITE_ALL_DATA)
            }
            _ => false,
        }
    }

    /// Whether a role may look into a schema of an image, by the rights of this one.
    ///
    /// # Errors
    /// `42501`.
    pub fn check_look(&self, role: Oid, image: &Self, place: Option<Oid>) -> Result<()> {
        let in_image = |oid| image.namespace_by_oid(oid);
        let place = place.and_then(|oid| self.namespace_by_oid(oid).or_else(|| in_image(oid)));
        match place {
            Some(schema) if !self.allows_in_schema(role, schema, false) => {
                let message = format!("permission denied for schema {}", schema.name);
                Err(SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message))
            }
            _ => Ok(()),
        }
    }

    /// Whether a role may look into a schema, or make something in it, by the rights on it in this image, whichever one it is from; one that is not here has those that were on
    /// it there. Everybody may look into those that a database comes with.
    pub fn allows_in_schema(&self, role: Oid, namespace: &Namespace, create: bool) -> bool {
        let here = self.namespace_by_oid(namespace.oid);
        let namespace = here.map_or(namespace, |here| here);
        let right = if create {
            Rights::CREATE
        } else {
            Rights::USAGE
        };
        if self.is_temporary(namespace.oid) && !create {
            return true;
        }
        let common = [PG_CATALOG, PUBLIC, INFORMATION_SCHEMA].contains(&namespace.oid);
        if self.owns(role, namespace.owner) || (common && !create && namespace.acl.is_none()) {
            return true;
        }
        let data = [
            built_in_roles::READ_ALL_DATA,
            built_in_roles::WRITE_ALL_DATA,
        ];
        if !create && data.into_iter().any(|data| self.has_rights_of(role, data)) {
            return true;
        }
        let grants = namespace.acl.iter().flatten();
        let mut fitting = grants.filter(|grant| grant.rights.contains(right));
        fitting.any(|grant| grant.grantee == 0 || self.has_rights_of(role, grant.grantee))
    }

    /// Foreign keys whose target is this table, each with the relation that has it.
    pub fn referring(&self, target: Oid) -> Vec<(Arc<Relation>, ForeignKey)> {
        let mut found = Vec::new();
        for relation in self.relations() {
            let keys = relation
                .table()
                .map_or(&[][..], |table| &table.foreign_keys);
            let keys = keys.iter().filter(|key| key.target == target);
            found.extend(keys.map(|key| (relation.clone(), key.clone())));
        }
        found
    }

    /// All relations, by oid; without types.
    pub fn relations(&self) -> Vec<&Arc<Relation>> {
        let mut all: Vec<_> = self.relations.values().collect();
        all.retain(|relation| !relation.is_type());
        all.sort_by_key(|relation| relation.oid);
        all
    }
}
