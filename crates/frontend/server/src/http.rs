//! Metrics and health over HTTP: `/metrics` for Prometheus, `/health` for whoever has to know whether clients are served, and can write.
//!
//! Concurrency: one thread with a runtime of its own; what it answers is computed from counters and blocks nobody, and nothing
//! of it can delay a client of the database.
//!
//! Invariants:
//! - H1 At most [`CONNECTIONS_MAX`] connections are open, each for at most [`REQUEST_TIME`] until it has sent a whole request, and [`CONNECTION_TIME`] from then on: who sends half a request, or nothing, takes no descriptors from
//!   clients of the database.
//! - H2 Nobody who sends half a request, or nothing, keeps others from being answered: whoever comes is taken up at once, and where there is no room the one that came first
//!   goes. So a probe that asks when it has come is answered, whatever others there are.

use crate::exposition;
use crate::health::reason;
use crate::server::Shared;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::Sleep;

/// Connections at once.
pub const CONNECTIONS_MAX: usize = 64;
/// How long one stays once it has sent a whole request, however many follow.
const CONNECTION_TIME: Duration = Duration::from_secs(5);
/// How long one stays that has not sent a whole request.
const REQUEST_TIME: Duration = Duration::from_secs(2);
/// What the head of a request ends with.
const HEAD_END: &[u8] = b"\r\n\r\n";

/// The thread; dropping it ends it.
#[derive(Debug)]
pub struct Http {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Http {
    /// Answers at `listener`.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start(listener: TcpListener, shared: &Arc<Shared>) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let router = Router::new()
            .route("/metrics", get(metrics))
            .route("/health", get(health))
            .with_state(Arc::downgrade(shared));
        let serve = async move {
            let listener = Few {
                listener: tokio::net::TcpListener::from_std(listener)?,
                open: VecDeque::new(),
                request_time: REQUEST_TIME,
            };
            tokio::select! {
                served = axum::serve(listener, router) => served,
                // Told, or nobody is left who could tell.
                _ = stopped => Ok(()),
            }
        };
        let thread = thread::Builder::new()
            .name("vellum-http".into())
            .spawn(move || {
                if let Err(error) = runtime.block_on(serve) {
                    tracing::error!(%error, "metrics and health are not served any more");
                }
            })?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in it was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// A listener with few connections at once (H1).
struct Few {
    listener: tokio::net::TcpListener,
    /// Of each connection, in the order in which they came: dropped, it has the connection end.
    open: VecDeque<oneshot::Sender<()>>,
    request_time: Duration,
}

impl Few {
    /// Room for one more, for which the oldest goes where there is none (H2).
    async fn take(&mut self, stream: TcpStream) -> Brief {
        self.open.retain(|own| !own.is_closed());
        let is_full = self.open.len() >= CONNECTIONS_MAX;
        if is_full {
            self.open.pop_front();
        }
        let (stays, pushed_out) = oneshot::channel();
        self.open.push_back(stays);
        if is_full {
            // It gives its descriptor back before the next one comes.
            tokio::task::yield_now().await;
        }
        Brief {
            stream,
            end: Box::pin(tokio::time::sleep(self.request_time)),
            pushed_out: Some(pushed_out),
            head: 0,
        }
    }
}

impl axum::serve::Listener for Few {
    type Io = Brief;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Brief, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => return (self.take(stream).await, address),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection over HTTP");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends at a moment (H1), or when another one needs its room (H2).
struct Brief {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    /// None: another one has its room.
    pushed_out: Option<oneshot::Receiver<()>>,
    /// How much of [`HEAD_END`] was read last; all of it: a request has come.
    head: usize,
}

impl Brief {
    /// Looks at what was read for the end of the first request's head: the connection has its time from then on.
    fn note_read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.head == HEAD_END.len() {
                return;
            }
            self.head = match HEAD_END.get(self.head) {
                Some(next) if next == byte => self.head + 1,
                _ => usize::from(HEAD_END.first() == Some(byte)),
            };
        }
        if self.head == HEAD_END.len() {
            self.end.as_mut().set(tokio::time::sleep(CONNECTION_TIME));
        }
    }

    /// An error once its time is over, or its room another's; until then whoever asks is woken when it is.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let waits = self.pushed_out.as_mut();
        if waits.is_none_or(|waits| Pin::new(waits).poll(context).is_ready()) {
            self.pushed_out = None;
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        match self.end.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Brief {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        let before = into.filled().len();
        let read = pin!(&mut self.stream).poll_read(context, into);
        if self.head < HEAD_END.len() {
            self.note_read(into.filled().get(before..).unwrap_or_default());
        }
        read
    }
}

impl AsyncWrite for Brief {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        pin!(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        pin!(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        pin!(&mut self.stream).poll_shutdown(context)
    }
}

async fn metrics(State(shared): State<Weak<Shared>>) -> Response {
    let Some(shared) = shared.upgrade() else {
        return gone();
    };
    let format = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, format)], exposition::page(&shared)).into_response()
}

async fn health(State(shared): State<Weak<Shared>>) -> Response {
    let shared = shared.upgrade();
    let Some(shared) = shared.filter(|shared| !shared.sessions.is_stopping()) else {
        return gone();
    };
    let health = shared.database.engine().health();
    if health.poisoned {
        let why = format!("{}\n", reason(&health));
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    }
    (StatusCode::OK, "serving\n").into_response()
}

fn gone() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response()
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test may panic"
    )]
    use super::*;
    use std::future::poll_fn;
    use std::io::Write;

    async fn read(brief: &mut Brief) -> io::Result<usize> {
        let mut room = [0; 64];
        let mut into = ReadBuf::new(&mut room);
        poll_fn(|context| Pin::new(&mut *brief).poll_read(context, &mut into)).await?;
        Ok(into.filled().len())
    }

    async fn few() -> (Few, SocketAddr) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let few = Few {
            listener,
            open: VecDeque::new(),
            request_time: Duration::from_secs(3600),
        };
        (few, address)
    }

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build();
        runtime.unwrap().block_on(test);
    }

    #[test]
    fn regress_where_there_is_no_room_the_oldest_goes() {
        run(async {
            let (mut few, address) = few().await;
            let (mut clients, mut taken) = (Vec::new(), Vec::new());
            for number in 0..CONNECTIONS_MAX + 3 {
                let mut client = std::net::TcpStream::connect(address).unwrap();
                client.write_all(b"GET /me").unwrap();
                clients.push(client);
                taken.push(axum::serve::Listener::accept(&mut few).await.0);
                if number == 1 {
                    // Who has gone takes no room.
                    drop(taken.remove(0));
                }
            }
            for (number, brief) in taken.iter_mut().enumerate() {
                if number >= 2 {
                    assert_eq!(read(brief).await.unwrap(), 7, "{number}");
                    continue;
                }
                // However often it is asked.
                for _ in 0..2 {
                    let error = read(brief).await.unwrap_err();
                    assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
                }
            }
        });
    }

    #[test]
    fn a_whole_request_gives_a_connection_its_time() {
        run(async {
            let (mut few, address) = few().await;
            for (text, whole) in [
                ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", true),
                ("GET / HTTP/1.1\r\n\r\r\n\r\n", true),
                ("GET / HTTP/1.1\r\nHost: x\r\n", false),
                ("\r\n\r\r\n", false),
            ] {
                let _client = std::net::TcpStream::connect(address).unwrap();
                let mut brief = axum::serve::Listener::accept(&mut few).await.0;
                let before = brief.end.deadline();
                // As it comes: in pieces.
                for byte in text.as_bytes() {
                    brief.note_read(&[*byte]);
                }
                assert_eq!(brief.end.deadline() != before, whole, "{text:?}");
            }
        });
    }
}
