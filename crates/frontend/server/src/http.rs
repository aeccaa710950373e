//! Metrics and health over HTTP: `/metrics` for Prometheus, `/health` for whoever has to know whether clients are served.
//!
//! Concurrency: one thread with a runtime of its own; what it answers is computed from counters and blocks nobody, and nothing
//! of it can delay a client of the database.

use crate::exposition;
use crate::server::Shared;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use tokio::sync::oneshot;

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
            let listener = tokio::net::TcpListener::from_std(listener)?;
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

async fn metrics(State(shared): State<Weak<Shared>>) -> Response {
    let Some(shared) = shared.upgrade() else {
        return gone();
    };
    let format = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, format)], exposition::page(&shared)).into_response()
}

async fn health(State(shared): State<Weak<Shared>>) -> Response {
    match shared.upgrade() {
        Some(shared) if !shared.sessions.is_stopping() => {
            (StatusCode::OK, "serving\n").into_response()
        }
        _ => gone(),
    }
}

fn gone() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response()
}
