//! Which roles a part of the catalog names, as its owner, in rights and memberships: none of them may be dropped while it does.

use super::built_in_roles::is_built_in;
use super::{AclOf, Catalog, Change, Extension, Namespace, Oid, Relation};
use crate::database::FIRST_ROLE_OID;
use crate::roles::{Grant, Role};

/// The roles that something names.
#[derive(Default)]
struct Uses<'u> {
    owner: Option<&'u str>,
    roles: Vec<Oid>,
}

impl<'u> Uses<'u> {
    fn new<'a>(owner: Option<&'u str>, rights: impl IntoIterator<Item = &'a [Grant]>) -> Self {
        let grants = rights.into_iter().flatten();
        Self {
            owner,
            roles: grants
                .flat_map(|grant| [grant.grantee, grant.grantor])
                .collect(),
        }
    }

    fn of_relation(relation: &'u Relation) -> Self {
        let columns = relation.column_acls.iter().map(|(_, acl)| acl.as_slice());
        Self::new(
            Some(&relation.owner),
            relation.acl.as_deref().into_iter().chain(columns),
        )
    }

    fn of_namespace(namespace: &'u Namespace) -> Self {
        Self::new(Some(&namespace.owner), namespace.acl.as_deref())
    }

    fn of_extension(extension: &'u Extension) -> Self {
        Self::new(Some(&extension.owner), None)
    }

    fn of_oid(role: Oid) -> Self {
        Self {
            owner: None,
            roles: vec![role],
        }
    }

    fn of_role(role: &Role) -> Self {
        let groups = role.member_of.iter().map(|membership| membership.role);
        Self {
            owner: None,
            roles: groups.collect(),
        }
    }
}

impl Catalog {
    /// The roles that a change names and what it replaces does not: those that somebody could drop meanwhile, each once.
    ///
    /// # Errors
    /// The name of a new owner that is gone.
    pub fn roles_added<'c>(&self, change: &'c Change) -> Result<Vec<Oid>, &'c str> {
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
                let mut after = Uses::new(None, acl.as_deref());
                if let AclOf::Default { role, .. } = of
                    && acl.is_some()
                {
                    after.roles.push(*role);
                }
                (self.acl(*of).map(|acl| Uses::new(None, [acl])), after)
            }
            Change::PutSettings(of, _) => (None, Uses::of_oid(of.role)),
            Change::PutComment(comment) => (None, Uses::of_oid(comment.object)),
            Change::DropNamespace(_)
            | Change::DropRelation(_)
            | Change::DropRole(_)
            | Change::DropExtension(_) => return Ok(Vec::new()),
        };
        let before = before.unwrap_or_default();
        let mut added = after.roles;
        if let Some(owner) = after.owner.filter(|owner| before.owner != Some(*owner)) {
            let found = self.role(owner).ok_or(owner)?;
            added.push(found.oid);
        }
        added.retain(|role| {
            let stays = *role == FIRST_ROLE_OID || is_built_in(*role);
            !stays && !before.roles.contains(role) && self.role_by_oid(*role).is_some()
        });
        added.sort_unstable();
        added.dedup();
        Ok(added)
    }
}
