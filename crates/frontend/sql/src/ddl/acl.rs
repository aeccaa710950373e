//! How GRANT and REVOKE change a list of rights, as PostgreSQL's `acl.c` does.

use crate::error::{Result, SqlError};
use crate::roles::{Grant, Rights};
use crate::sqlstate;

/// What is done.
pub(super) struct Deed<'d> {
    pub give: bool,
    /// With the right to give them on; of a REVOKE: that right alone.
    pub option: bool,
    /// Oids of roles; 0: everybody.
    pub grantees: &'d [u32],
    pub cascade: bool,
}

impl Deed<'_> {
    /// Changes the rights on an object of a role.
    ///
    /// # Errors
    /// `0LP01`; `2BP01` for rights that were given on, without CASCADE.
    pub fn apply(
        &self,
        acl: &mut Vec<Grant>,
        rights: Rights,
        grantor: u32,
        owner: u32,
    ) -> Result<()> {
        for grantee in self.grantees {
            if *grantee == 0 && self.option && self.give {
                let text = "grant options can only be granted to roles";
                return Err(SqlError::new(sqlstate::INVALID_GRANT_OPERATION, text));
            }
            match self.give {
                true => self.add(acl, rights, *grantee, grantor),
                false => self.take(acl, rights, (*grantee, grantor), owner)?,
            }
        }
        Ok(())
    }

    fn add(&self, acl: &mut Vec<Grant>, rights: Rights, grantee: u32, grantor: u32) {
        let grantable = if self.option { rights } else { Rights::NONE };
        let same = |own: &&mut Grant| (own.grantee, own.grantor) == (grantee, grantor);
        match acl.iter_mut().find(same) {
            Some(known) => {
                known.rights = known.rights.with(rights);
                known.grantable = known.grantable.with(grantable);
            }
            None => acl.push(Grant {
                grantee,
                grantor,
                rights,
                grantable,
            }),
        }
    }

    fn take(
        &self,
        acl: &mut Vec<Grant>,
        rights: Rights,
        (grantee, grantor): (u32, u32),
        owner: u32,
    ) -> Result<()> {
        let same = |own: &Grant| (own.grantee, own.grantor) == (grantee, grantor);
        let Some(at) = acl.iter().position(same) else {
            return Ok(());
        };
        let lost = acl[at].grantable.both(rights);
        acl[at].grantable = acl[at].grantable.without(rights);
        if !self.option {
            acl[at].rights = acl[at].rights.without(rights);
        }
        if acl[at].rights.is_none() {
            acl.remove(at);
        }
        // Who has them of another may still give them.
        let others = acl.iter().filter(|own| own.grantee == grantee);
        let kept = others.fold(Rights::NONE, |sum, own| sum.with(own.grantable));
        let lost = lost.without(kept);
        if grantee == owner || lost.is_none() {
            return Ok(());
        }
        // What it has given on.
        while let Some(given) = acl
            .iter()
            .find(|own| own.grantor == grantee && !own.rights.both(lost).is_none())
            .copied()
        {
            if !self.cascade {
                let error = SqlError::new(
                    sqlstate::DEPENDENT_OBJECTS_STILL_EXIST,
                    "dependent privileges exist",
                );
                return Err(error.with_hint("Use CASCADE to revoke them too."));
            }
            let whole = Deed {
                option: false,
                ..*self
            };
            whole.take(acl, lost, (given.grantee, grantee), owner)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    const OWNER: u32 = 10;

    fn shown(acl: &[Grant]) -> String {
        let all = acl.iter().map(|own| own.text(|oid| oid.to_string()));
        all.collect::<Vec<_>>().join(",")
    }

    fn deed(give: bool, option: bool, grantees: &[u32], cascade: bool) -> Deed<'_> {
        Deed {
            give,
            option,
            grantees,
            cascade,
        }
    }

    #[test]
    fn what_was_given_on_goes_with_what_it_was_given_by() {
        let mut acl = Vec::new();
        let select = Rights::SELECT;
        deed(true, true, &[1], false)
            .apply(&mut acl, select, OWNER, OWNER)
            .unwrap();
        deed(true, true, &[2], false)
            .apply(&mut acl, select, 1, OWNER)
            .unwrap();
        deed(true, false, &[3, 0], false)
            .apply(&mut acl, select, 2, OWNER)
            .unwrap();
        assert_eq!(shown(&acl), "1=r*/10,2=r*/1,3=r/2,=r/2");
        let mut other = acl.clone();
        let refused = deed(false, false, &[1], false);
        let error = refused.apply(&mut other, select, OWNER, OWNER).unwrap_err();
        assert_eq!(error.message(), "dependent privileges exist");
        deed(false, true, &[1], true)
            .apply(&mut acl, select, OWNER, OWNER)
            .unwrap();
        assert_eq!(shown(&acl), "1=r/10");
    }

    #[test]
    fn who_has_a_right_of_two_keeps_that_of_one() {
        let mut acl = Vec::new();
        let select = Rights::SELECT;
        for grantor in [OWNER, 5] {
            deed(true, true, &[1], false)
                .apply(&mut acl, select, grantor, OWNER)
                .unwrap();
        }
        deed(true, false, &[2], false)
            .apply(&mut acl, select, 1, OWNER)
            .unwrap();
        deed(false, false, &[1], false)
            .apply(&mut acl, select, OWNER, OWNER)
            .unwrap();
        assert_eq!(shown(&acl), "1=r*/5,2=r/1");
        let everybody = deed(true, true, &[0], false).apply(&mut acl, select, OWNER, OWNER);
        assert_eq!(everybody.unwrap_err().sqlstate().to_string(), "0LP01");
    }
}
