//! LISTEN, NOTIFY, UNLISTEN: messages from transactions that commit to the sessions that listen.
//!
//! Invariants:
//! - N1 What a transaction says on channels, and what it listens to from then on, counts when it has committed, and is forgotten when it is rolled back, to a savepoint too.
//!   The same message on the same channel counts once a transaction.
//! - N2 All who listen hear messages in one order, that of the commits: one transaction that has something to say commits at a time.
//! - N3 A session is told between transactions only.
//!
//! Interleaving: a transaction commits, and another one begins to listen before the first has told: it hears a message of what its later snapshots see anyway.
//!
//! Concurrency: a latch that is held over the commits of transactions that say something; one for who listens, held for a look; one a mailbox.

use super::Session;
use crate::error::{Result, SqlError};
use crate::sqlstate;
use crate::wire::CommandTag;
use sqlparser::ast;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};
use vellum_base::maps::{HashMap, HashSet};
use vellum_sync::Mutex;
use vellum_sync::atomic::{AtomicUsize, Ordering};

/// Bytes of a payload, at most one less; of a channel's name, at most one less.
const PAYLOAD_BYTES: usize = 8000;
const NAME_BYTES: usize = 64;
/// What waits for a session that does not end its transaction, at most.
const MAILBOX_BYTES: usize = 64 << 20;

/// A message of another transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notification {
    /// Number of the session that sent it.
    pub process_id: i32,
    /// Where.
    pub channel: Arc<str>,
    /// What it says; may be empty.
    pub payload: Arc<str>,
}

impl Notification {
    fn bytes(&self) -> usize {
        self.channel.len() + self.payload.len() + 64
    }
}

/// What waits for a session.
#[derive(Default)]
pub(crate) struct Mailbox {
    messages: Mutex<Vec<Notification>>,
    /// Of the messages.
    bytes: AtomicUsize,
    /// Wakes whoever waits for the session's client.
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Mailbox").field(&self.bytes).finish()
    }
}

impl Mailbox {
    /// Relaxed: whoever looks takes the messages under their latch, or is woken later.
    fn is_empty(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) == 0
    }

    fn put(&self, messages: &[Notification]) {
        let mut own = self.messages.lock();
        own.extend_from_slice(messages);
        let bytes: usize = messages.iter().map(Notification::bytes).sum();
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        drop(own);
        if let Some(wake) = self.wake.get() {
            wake();
        }
    }

    fn take(&self) -> Vec<Notification> {
        let mut own = self.messages.lock();
        self.bytes.store(0, Ordering::Relaxed);
        std::mem::take(&mut *own)
    }
}

/// Who listens to what, of all sessions.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    /// N2.
    turn: Mutex<()>,
    listeners: Mutex<HashMap<u64, Listener>>,
}

#[derive(Debug)]
struct Listener {
    channels: BTreeSet<Arc<str>>,
    mailbox: Arc<Mailbox>,
}

impl Channels {
    /// The channels that a session listens to.
    pub fn of(&self, session: u64) -> Vec<Arc<str>> {
        let listeners = self.listeners.lock();
        let own = listeners.get(&session);
        own.map_or_else(Vec::new, |own| own.channels.iter().cloned().collect())
    }

    /// How full the fullest mailbox is, from 0 to 1.
    pub fn usage(&self) -> f64 {
        let listeners = self.listeners.lock();
        let bytes = listeners
            .values()
            .map(|own| own.mailbox.bytes.load(Ordering::Relaxed));
        bytes.max().unwrap_or(0) as f64 / MAILBOX_BYTES as f64
    }

    /// A session listens to nothing any more.
    pub fn leave(&self, session: u64) {
        self.listeners.lock().remove(&session);
    }

    /// Commits a transaction that has something to say, or listens to something (N1, N2).
    fn commit(
        &self,
        (session, process_id): (u64, i32),
        mailbox: &Arc<Mailbox>,
        said: Said,
        commit: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let messages: Vec<Notification> = said
            .messages
            .into_iter()
            .map(|(channel, payload)| Notification {
                process_id,
                channel,
                payload,
            })
            .collect();
        let turn = (!messages.is_empty()).then(|| self.turn.lock());
        self.check_room(&messages)?;
        commit()?;
        let mut listeners = self.listeners.lock();
        for action in said.actions {
            match action {
                Action::Listen(channel) => {
                    let own = listeners.entry(session).or_insert_with(|| Listener {
                        channels: BTreeSet::new(),
                        mailbox: mailbox.clone(),
                    });
                    own.channels.insert(channel);
                }
                Action::Unlisten(channel) => {
                    if let Some(own) = listeners.get_mut(&session) {
                        own.channels.remove(&channel);
                        if own.channels.is_empty() {
                            listeners.remove(&session);
                        }
                    }
                }
                Action::UnlistenAll => {
                    listeners.remove(&session);
                }
            }
        }
        let mut told = Vec::new();
        if !messages.is_empty() {
            for own in listeners.values() {
                let heard = messages.iter();
                let heard = heard.filter(|message| own.channels.contains(&message.channel));
                let heard: Vec<Notification> = heard.cloned().collect();
                if !heard.is_empty() {
                    told.push((own.mailbox.clone(), heard));
                }
            }
        }
        drop(listeners);
        // Out of the latch, which who is woken may want, but in turn.
        for (mailbox, heard) in told {
            mailbox.put(&heard);
        }
        drop(turn);
        Ok(())
    }

    /// # Errors
    /// `54000` if somebody who would have to hear the messages has not taken those before.
    fn check_room(&self, messages: &[Notification]) -> Result<()> {
        if messages.is_empty() {
            return Ok(());
        }
        let bytes: usize = messages.iter().map(Notification::bytes).sum();
        let listeners = self.listeners.lock();
        let full = listeners.values().any(|own| {
            let waiting = own.mailbox.bytes.load(Ordering::Relaxed);
            waiting > 0
                && waiting.saturating_add(bytes) > MAILBOX_BYTES
                && messages
                    .iter()
                    .any(|message| own.channels.contains(&message.channel))
        });
        if full {
            let text = "too many notifications in the NOTIFY queue";
            return Err(SqlError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, text));
        }
        Ok(())
    }
}

/// What is to happen when a transaction has committed.
#[derive(Debug, Default)]
struct Said {
    messages: Vec<(Arc<str>, Arc<str>)>,
    actions: Vec<Action>,
}

#[derive(Debug)]
enum Action {
    Listen(Arc<str>),
    Unlisten(Arc<str>),
    UnlistenAll,
}

/// The same as long as it is open.
#[derive(Debug, Default)]
pub(crate) struct Saying {
    said: RefCell<Said>,
    /// The messages.
    known: RefCell<HashSet<(Arc<str>, Arc<str>)>>,
}

impl Saying {
    /// A point to go back to.
    pub fn point(&self) -> (usize, usize) {
        let said = self.said.borrow();
        (said.messages.len(), said.actions.len())
    }

    /// Forgets what was said since.
    pub fn go_back(&self, (messages, actions): (usize, usize)) {
        let mut said = self.said.borrow_mut();
        said.actions.truncate(actions);
        let mut known = self.known.borrow_mut();
        for forgotten in said.messages.drain(messages..) {
            known.remove(&forgotten);
        }
    }

    /// NOTIFY.
    ///
    /// # Errors
    /// `22023` for names and payloads that are too long, or a name that is empty.
    pub fn notify(&self, channel: &str, payload: &str) -> Result<()> {
        let invalid =
            |text: &'static str| Err(SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, text));
        if channel.is_empty() {
            return invalid("channel name cannot be empty");
        }
        if channel.len() >= NAME_BYTES {
            return invalid("channel name too long");
        }
        if payload.len() >= PAYLOAD_BYTES {
            return invalid("payload string too long");
        }
        let message: (Arc<str>, Arc<str>) = (channel.into(), payload.into());
        if self.known.borrow_mut().insert(message.clone()) {
            self.said.borrow_mut().messages.push(message);
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        let said = self.said.borrow();
        said.messages.is_empty() && said.actions.is_empty()
    }
}

impl Session {
    /// LISTEN, UNLISTEN, NOTIFY.
    pub(super) fn channel_statement(&mut self, statement: &ast::Statement) -> Result<CommandTag> {
        if self.open.is_none() {
            self.start_statement()?;
        }
        let Some(open) = &self.open else {
            return Err(SqlError::internal("a statement without transaction"));
        };
        let act = |action| open.saying.said.borrow_mut().actions.push(action);
        let named = |channel: &ast::Ident| crate::bind::folded(channel).into();
        Ok(CommandTag::plain(match statement {
            ast::Statement::LISTEN { channel } => {
                act(Action::Listen(named(channel)));
                "LISTEN"
            }
            ast::Statement::UNLISTEN { channel } => {
                act(if channel.value == "*" && channel.quote_style.is_none() {
                    Action::UnlistenAll
                } else {
                    Action::Unlisten(named(channel))
                });
                "UNLISTEN"
            }
            ast::Statement::NOTIFY { channel, payload } => {
                let channel = crate::bind::folded(channel);
                let payload = payload.as_deref().unwrap_or_default();
                open.saying.notify(&channel, payload)?;
                "NOTIFY"
            }
            _ => return Err(SqlError::internal("no statement about channels")),
        }))
    }

    /// Commits the transaction that is open, and tells what it said (N1).
    pub(super) fn commit_saying(&self, open: Box<super::Open>) -> Result<()> {
        if open.saying.is_empty() {
            return open.commit(&self.shared);
        }
        let said = open.saying.said.take();
        let own = (self.activity.number, self.options.process_id);
        let channels = &self.shared.channels;
        // Its commit rolls back what it cannot commit; so does dropping it.
        channels.commit(own, &self.mailbox, said, || open.commit(&self.shared))
    }

    /// Whether it listens to any channel: its client may have to be told something at any time.
    pub fn is_listening(&self) -> bool {
        // Nobody else holds it.
        Arc::strong_count(&self.mailbox) > 1
    }

    /// Says how whoever waits for the session's client is woken when there is something to be told; the first to say so is heard.
    pub fn when_notified(&self, wake: Box<dyn Fn() + Send + Sync>) {
        let _ = self.mailbox.wake.set(wake);
    }

    /// Whether there are messages that the client may be told now (N3).
    pub fn has_notifications(&self) -> bool {
        let between = self.status == super::TransactionStatus::Idle && self.open.is_none();
        between && !self.mailbox.is_empty()
    }

    /// The messages that the client may be told now: none in a transaction block (N3).
    pub fn take_notifications(&mut self) -> Vec<Notification> {
        if !self.has_notifications() {
            return Vec::new();
        }
        self.mailbox.take()
    }

    /// Listens to nothing any more, at once.
    pub(super) fn listens_to_nothing(&mut self) {
        self.shared.channels.leave(self.activity.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_counts_once_and_goes_with_its_savepoint() {
        let saying = Saying::default();
        saying.notify("a", "x").unwrap();
        let point = saying.point();
        saying.notify("a", "x").unwrap();
        saying.notify("a", "y").unwrap();
        assert_eq!(saying.point(), (2, 0));
        saying.go_back(point);
        assert_eq!(saying.point(), (1, 0));
        saying.notify("a", "y").unwrap();
        assert_eq!(saying.point(), (2, 0), "said again, as it was forgotten");
    }
}
