//! Which roles a part of the catalog names, as its owner, in rights and memberships: none of them may be dropped while it does.
//!
//! All are kept by their oids, so that a role may be called otherwise and nothing is written for it.

use super::built_in_roles::is_built_in;
use super::{AclOf, Catalog, Change, Extension, Namespace, Oid, Relation};
use crate::database::FIRST_ROLE_OID;
use crate::roles::{Grant, Role};

/// The roles that something names.
#[derive(Default)]
struct Uses(Vec<Oid>);

impl Uses {
    fn of_rights<'a>(rights: impl IntoIterator<Item = &'a [Grant]>) -> Self {
        let grants = rights.into_iter().flatten();
        let roles = grants.flat_map(|grant| [grant.grantee, grant.grantor]);
        Self(roles.collect())
    }

    fn and(mut self, role: Oid) -> Self {
        self.0.push(role);
        self
    }

    fn of_relation(relation: &Relation) -> Self {
        let columns = relation.column_acls.iter().map(|(_, acl)| acl.as_slice());
        let rights = relation.acl.as_deref().into_iter().chain(columns);
        Self::of_rights(rights).and(relation.owner)
    }

    fn of_namespace(namespace: &Namespace) -> Self {
        Self::of_rights(namespace.acl.as_deref()).and(namespace.owner)
    }

    fn of_extension(extension: &Extension) -> Self {
        Self(vec![extension.owner])
    }

    fn of_role(role: &Role) -> Self {
        let groups = role.member_of.iter().map(|membership| membership.role);
        Self(groups.collect())
    }
}

impl Catalog {
    /// The role that a change makes the owner of something, if it was not so before.
    pub fn owner_given(&self, change: &Change) -> Option<Oid> {
        let (before, after) = match change {
            Change::PutRelation(next) => (self.relation(next.oid).map(|own| own.owner), next.owner),
            Change::PutNamespace(next) => {
                let before = self.namespace_by_oid(next.oid);
                (before.map(|own| own.owner), next.owner)
            }
            Change::PutExtension(next) => {
                let before = self.extension(&next.name);
                (before.map(|own| own.owner), next.owner)
            }
            _ => return None,
        };
        (before != Some(after)).then_some(after)
    }

    /// What belongs to a role that is not there, with the oid of that. Nothing does but in a damaged catalog: who owns something is not dropped.
    pub fn owned_by_nobody(&self) -> Vec<(String, Oid)> {
        let mut found = Vec::new();
        let mut look = |what: &str, name: &str, owner: Oid| {
            if self.role_by_oid(owner).is_none() {
                found.push((format!("{what} {name:?}"), owner));
            }
        };
        for namespace in self.namespaces() {
            look("schema", &namespace.name, namespace.owner);
        }
        for relation in self.relations().into_iter().chain(self.user_types()) {
            let schema = self.namespace_name(relation.namespace);
            let what = if relation.is_type() {
                "type"
            } else {
                "relation"
            };
            look(what, &format!("{schema}.{}", relation.name), relation.owner);
        }
        for extension in self.extensions() {
            look("extension", &extension.name, extension.owner);
        }
        found
    }

    /// The roles that a change names and what it replaces does not: those that somebody could drop meanwhile, each once. `roles`: the image that tells what roles
    /// there are, which may be newer than this one.
    pub fn roles_added(&self, change: &Change, roles: &Self) -> Vec<Oid> {
        let (before, after) = match change {
            Change::PutRelation(next) => (
                self.relation(next.oid).map(|own| Uses::of_relation(own)),
                Uses::of_relation(next),
            ),
            Change::PutNamespace(next) => (
                self.namespace_by_oid(next.oid)
                    .map(|own| Uses::of_namespace(own)),
                Uses::of_namespace(next),
            ),
            Change::PutExtension(next) => (
                self.extension(&next.name)
                    .map(|own| Uses::of_extension(own)),
                Uses::of_extension(next),
            ),
            Change::PutRole(next) | Change::RenameRole(_, next) => (
                self.role_by_oid(next.oid).map(|own| Uses::of_role(own)),
                Uses::of_role(next),
            ),
            Change::PutAcl(of, acl) => {
                let before = self.acl(*of).map(|acl| Uses::of_rights([acl]));
                let after = Uses::of_rights(acl.as_deref());
                let after = match of {
                    AclOf::Default { role, .. } if acl.is_some() => after.and(*role),
                    _ => after,
                };
                (before, after)
            }
            Change::PutSettings(of, _) => (None, Uses(vec![of.role])),
            Change::PutComment(comment) => (None, Uses(vec![comment.object])),
            Change::DropNamespace(_)
            | Change::DropRelation(_)
            | Change::DropRole(_)
            | Change::DropExtension(_) => return Vec::new(),
        };
        let (before, mut added) = (before.unwrap_or_default().0, after.0);
        added.retain(|role| {
            let stays = *role == FIRST_ROLE_OID || is_built_in(*role);
            !stays && !before.contains(role) && roles.role_by_oid(*role).is_some()
        });
        added.sort_unstable();
        added.dedup();
        added
    }
}
