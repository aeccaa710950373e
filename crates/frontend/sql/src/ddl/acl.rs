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
            // Nothing is no entry of a list.
            if rights.is_none() {
                continue;
            }
            match self.give {
                true if self.option => {
                    check_circle(acl, rights, (*grantee, grantor), owner)?;
                    self.add(acl, rights, *grantee, grantor);
                }
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

/// What is left of a list without a role: neither what it was given nor what it has given on, nor what others have of that. `above`: the rights on the whole, of a
/// list of a column.
pub(super) fn without(acl: &[Grant], above: &[Grant], role: u32, owner: u32) -> Vec<Grant> {
    let mut left: Vec<Grant> = acl
        .iter()
        .filter(|own| own.grantee != role)
        .copied()
        .collect();
    loop {
        let may_give = |grantor: u32| {
            let own = left.iter().chain(above);
            let own = own.filter(|own| own.grantee == grantor && grantor != role);
            own.fold(Rights::NONE, |sum, own| sum.with(own.grantable))
        };
        let baseless = left.iter().enumerate().find_map(|(at, own)| {
            let basis = may_give(own.grantor);
            (own.grantor != owner && !own.rights.without(basis).is_none()).then_some((at, basis))
        });
        let Some((at, basis)) = baseless else {
            return left;
        };
        left[at].rights = left[at].rights.both(basis);
        left[at].grantable = left[at].grantable.both(basis);
        if left[at].rights.is_none() {
            left.remove(at);
        }
    }
}

/// Whoever is given the right to give something on must not be whom the giver has it of: neither could be taken away from then on.
///
/// # Errors
/// `0LP01`.
fn check_circle(
    acl: &[Grant],
    rights: Rights,
    (grantee, grantor): (u32, u32),
    owner: u32,
) -> Result<()> {
    if grantee == owner || grantor == owner {
        return Ok(());
    }
    // What would be left if the grantee had nothing to give.
    let mut without = acl.to_vec();
    let taken = Deed {
        give: false,
        option: true,
        grantees: &[],
        cascade: true,
    };
    while let Some(held) = without
        .iter()
        .find(|own| own.grantee == grantee && !own.grantable.is_none())
        .copied()
    {
        taken.take(&mut without, held.grantable, (grantee, held.grantor), owner)?;
    }
    let own = without.iter().filter(|own| own.grantee == grantor);
    let own = own.fold(Rights::NONE, |sum, own| sum.with(own.grantable));
    if rights.without(own).is_none() {
        return Ok(());
    }
    let text = "grant options cannot be granted back to your own grantor";
    Err(SqlError::new(sqlstate::INVALID_GRANT_OPERATION, text))
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

    #[test]
    fn who_is_gone_has_nothing_and_has_given_nothing() {
        let give = |acl: &mut Vec<Grant>, from: u32, to: u32| {
            deed(true, true, &[to], false).apply(acl, Rights::SELECT, from, OWNER)
        };
        let mut acl = Vec::new();
        give(&mut acl, OWNER, 11).unwrap();
        give(&mut acl, 11, 12).unwrap();
        give(&mut acl, 12, 13).unwrap();
        give(&mut acl, OWNER, 14).unwrap();
        // In a circle nothing could be taken away from anybody.
        let circle = give(&mut acl, 12, 11).unwrap_err();
        assert_eq!(circle.sqlstate().to_string(), "0LP01");
        let left = without(&acl, &[], 11, OWNER);
        let of = |own: &Grant| (own.grantor, own.grantee);
        assert_eq!(left.iter().map(of).collect::<Vec<_>>(), [(OWNER, 14)]);
        // Of a column: what was given on by who has it of the table.
        let column = [Grant {
            grantor: 14,
            grantee: 15,
            ..acl[0]
        }];
        assert_eq!(without(&column, &acl, 11, OWNER), column);
        assert_eq!(without(&column, &acl, 14, OWNER), []);
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
        deed(true, true, &[5], false)
            .apply(&mut acl, select, OWNER, OWNER)
            .unwrap();
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
        assert_eq!(shown(&acl), "5=r*/10,1=r*/5,2=r/1");
        let everybody = deed(true, true, &[0], false).apply(&mut acl, select, OWNER, OWNER);
        assert_eq!(everybody.unwrap_err().sqlstate().to_string(), "0LP01");
    }
}
