//! What a client is told beside its answers, as far as it wants to hear it: `client_min_messages`.

use super::settings::SessionSettings;
use super::{Session, TransactionStatus, gone};
use crate::error::{Fields, Result};
use crate::sqlstate;
use crate::wire::Sink;

/// Tells a notice or a warning, unless it is below the level that the session has set.
///
/// # Errors
/// The client is gone.
pub(super) fn tell(settings: &SessionSettings, notice: &Fields, sink: &mut dyn Sink) -> Result<()> {
    if settings.hears(notice.severity) {
        sink.notice(notice).map_err(gone)?;
    }
    Ok(())
}

impl Session {
    /// [`tell`] of this session.
    ///
    /// # Errors
    /// The client is gone.
    pub(super) fn tell_notice(&self, notice: &Fields, sink: &mut dyn Sink) -> Result<()> {
        tell(&self.settings, notice, sink)
    }

    /// Warns of a statement that counts until the end of its transaction, and is alone in it. Statements of one text are in one.
    ///
    /// # Errors
    /// The client is gone.
    pub(super) fn warn_outside_block(&self, what: &str, sink: &mut dyn Sink) -> Result<()> {
        if self.status != TransactionStatus::Idle || self.several {
            return Ok(());
        }
        let message = format!("{what} can only be used in transaction blocks");
        let state = sqlstate::NO_ACTIVE_SQL_TRANSACTION;
        self.tell_notice(&Fields::warning(state, message), sink)
    }

    /// Warns of an end of a transaction block that there is not.
    ///
    /// # Errors
    /// The client is gone.
    pub(super) fn warn_no_block(&self, sink: &mut dyn Sink) -> Result<()> {
        let state = sqlstate::NO_ACTIVE_SQL_TRANSACTION;
        let text = "there is no transaction in progress";
        self.tell_notice(&Fields::warning(state, text), sink)
    }
}
