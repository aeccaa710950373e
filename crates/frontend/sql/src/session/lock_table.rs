//! LOCK TABLE: gates that a transaction holds to its end, or until it goes back to a savepoint before them.
//!
//! Modes: a gate is shared by those who write and held alone by those who change the definition; readers take nothing, because their snapshot shows them
//! the table as it was. So the modes up to ROW EXCLUSIVE are those of writers (ACCESS SHARE is nobody's), and all others keep
//! writers and each other out: as PostgreSQL's do, or stronger. No mode keeps readers out.

use super::Session;
use crate::catalog::{Kind, Mode, Oid};
use crate::error::{Result, SqlError};
use crate::roles::Rights;
use crate::sqlstate;
use crate::wire::CommandTag;
use sqlparser::ast::{self, LockTableMode};

impl Session {
    /// # Errors
    /// `25P01` outside of a block; `42501`; `55P03` with NOWAIT or after `lock_timeout`; `40P01`.
    pub(super) fn lock_tables(&mut self, lock: &ast::Lock) -> Result<CommandTag> {
        self.require_more_statements("LOCK TABLE")?;
        if self.open.is_none() {
            self.open = Some(self.begun(self.settings.characteristics())?);
        }
        let said = lock.lock_mode.as_ref();
        let said = said.unwrap_or(&LockTableMode::AccessExclusive);
        for target in &lock.tables {
            while !self.lock_table(&target.name, said, lock.nowait)? {}
        }
        Ok(CommandTag::plain("LOCK TABLE"))
    }

    /// False if it has to look again what the name stands for.
    fn lock_table(
        &mut self,
        name: &ast::ObjectName,
        said: &LockTableMode,
        nowait: bool,
    ) -> Result<bool> {
        // As of now, whatever the level: the transaction's snapshot is drawn by the first statement that reads.
        let shared = self.shared.clone();
        if let Some(open) = &mut self.open {
            let used = open.used;
            open.begin_statement(&shared)?;
            open.used = used;
        }
        let search_path = self.search_path();
        let relation = self
            .surroundings(&search_path, "")
            .binder()
            .relation(name)
            .map_err(SqlError::without_place)?;
        match relation.kind {
            Kind::Table(_) => {}
            Kind::View(_) if *said != LockTableMode::AccessShare => {
                return Err(SqlError::unsupported("LOCK TABLE of a view"));
            }
            Kind::View(_) => {}
            Kind::System(_) if *said != LockTableMode::AccessShare => {
                return Err(SqlError::unsupported("LOCK TABLE of a system relation"));
            }
            Kind::System(_) => {}
            Kind::Enum(_) | Kind::Domain(_) | Kind::Sequence(_) => {
                let message = format!("cannot lock relation \"{}\"", relation.name);
                let detail = "This operation is not supported for sequences.";
                return Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message).with_detail(detail));
            }
        }
        self.check_may_lock(relation.oid, said)?;
        let mode = match said {
            LockTableMode::AccessShare => return Ok(true),
            LockTableMode::RowShare | LockTableMode::RowExclusive => Mode::Write,
            _ => Mode::Alone,
        };
        let cancel = self.cancel.clone();
        let mut waiting = self.waiting(&cancel);
        let Some(open) = &mut self.open else {
            return Err(SqlError::internal("a block without transaction"));
        };
        let waiting = (!nowait).then_some(&mut waiting);
        if open.enter(&shared, relation.oid, mode, waiting)? {
            if open.look_at_rights(&shared) {
                // It has waited.
                self.check_may_lock(relation.oid, said)?;
            }
            return Ok(true);
        }
        // With the gate in hand: nobody changes it any more.
        if open.used && open.characteristics.repeatable {
            return Err(SqlError::changed_meanwhile());
        }
        Ok(false)
    }

    /// One of the rights that a mode asks for is enough.
    fn check_may_lock(&self, relation: Oid, said: &LockTableMode) -> Result<()> {
        let writes = [Rights::UPDATE, Rights::DELETE, Rights::TRUNCATE];
        let rights: &[Rights] = match said {
            LockTableMode::AccessShare => &[Rights::SELECT],
            LockTableMode::RowExclusive => &[
                Rights::UPDATE,
                Rights::DELETE,
                Rights::TRUNCATE,
                Rights::INSERT,
            ],
            _ => &writes,
        };
        let mut done = Ok(());
        for right in rights {
            done = self.check_rights(&[(relation, *right)]);
            if done.is_ok() {
                break;
            }
        }
        done
    }
}
