//! Metrics and health over HTTP: `/metrics` for Prometheus, `/health` for whoever has to know whether clients are served, and can write.
//!
//! Concurrency: one thread with a runtime of its own; what it answers is computed from counters and blocks nobody, and nothing
//! of it can delay a client of the database.
//!
//! Invariants:
//! - H1 At most [`CONNECTIONS_MAX`] connections are open, each for at most [`CONNECTION_TIME`]: who sends half a request, or nothing, takes no descriptors from
//!   clients of the database. Others wait in the system's queue.

use crate::exposition;
use crate::health::reason;
use crate::server::Shared;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Sleep;

/// Connections at once.
pub const CONNECTIONS_MAX: usize = 32;
/// How long one stays, however many requests it is used for.
const CONNECTION_TIME: Duration = Duration::from_secs(5);

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
                room: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
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
    room: Arc<Semaphore>,
}

impl axum::serve::Listener for Few {
    type Io = Brief;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Brief, SocketAddr) {
        loop {
            let Ok(place) = self.room.clone().acquire_owned().await else {
                // Nobody closes it.
                return std::future::pending().await;
            };
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    let brief = Brief {
                        stream,
                        end: Box::pin(tokio::time::sleep(CONNECTION_TIME)),
                        _place: place,
                    };
                    return (brief, address);
                }
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

/// A connection that ends at a moment (H1).
struct Brief {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    _place: OwnedSemaphorePermit,
}

impl Brief {
    /// An error once its time is over; until then whoever asks is woken when it is.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
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
        pin!(&mut self.stream).poll_read(context, into)
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
