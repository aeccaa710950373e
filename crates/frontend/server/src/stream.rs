//! The socket of a connection, with or without TLS.
//!
//! States: plain → [`Stream::secure`] → TLS. While a deadline is set (login), every read and write gets what is left of it, so that
//! a client that sends a byte now and then does not stay; without one a read returns `WouldBlock` after a pause, which is when a
//! connection is parked.
//!
//! Concurrency: a stream belongs to one thread at a time. [`Socket`] is shared with whoever has to end it: shutting down is
//! all that others do.

use crate::tls::Tls;
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustls::ServerConnection;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use vellum_base::clock::monotonic_nanos;

/// A socket that was accepted.
#[derive(Debug)]
pub struct Socket {
    kind: Kind,
    /// A thread waits for its client to read.
    blocked: AtomicBool,
    /// [`Socket::terminate`] was called.
    terminated: AtomicBool,
}

#[derive(Debug)]
enum Kind {
    /// With the client's address.
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
}

impl Socket {
    /// One of TCP, with the client's address.
    pub fn tcp(socket: TcpStream, address: SocketAddr) -> Self {
        Self::new(Kind::Tcp(socket, address))
    }

    /// One of the Unix socket.
    pub fn unix(socket: UnixStream) -> Self {
        Self::new(Kind::Unix(socket))
    }

    fn new(kind: Kind) -> Self {
        Self {
            kind,
            blocked: AtomicBool::new(false),
            terminated: AtomicBool::new(false),
        }
    }

    /// Number of the descriptor.
    pub fn descriptor(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }

    /// The client's address; none over the Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.kind {
            Kind::Tcp(_, address) => Some(*address),
            Kind::Unix(_) => None,
        }
    }

    /// The address at which the client found the server; none over the Unix socket.
    pub fn own_address(&self) -> Option<SocketAddr> {
        match &self.kind {
            Kind::Tcp(socket, _) => socket.local_addr().ok(),
            Kind::Unix(_) => None,
        }
    }

    /// Ends one direction or both, also under the feet of a thread that waits for it. An error means that it has ended.
    pub fn shut_down(&self, how: Shutdown) {
        let _ = match &self.kind {
            Kind::Tcp(socket, _) => socket.shutdown(how),
            Kind::Unix(socket) => socket.shutdown(how),
        };
    }

    /// Ends the reading side: a thread that waits for its client, or the door, sees an end and asks why, and tells the client. One that waits for its client to read
    /// cannot tell it anything: then both sides end.
    pub fn terminate(&self) {
        // A Dekker pair with `write_waiting`: one of the two sees the other.
        self.terminated.store(true, Ordering::SeqCst);
        let both = self.blocked.load(Ordering::SeqCst);
        self.shut_down(if both { Shutdown::Both } else { Shutdown::Read });
    }

    /// Writes where there is no room now: waits until the client has read something, or the timeout of writes is over.
    #[cold]
    fn write_waiting(&self, bytes: &[u8]) -> io::Result<usize> {
        self.blocked.store(true, Ordering::SeqCst);
        let written = if self.terminated.load(Ordering::SeqCst) {
            Err(io::ErrorKind::ConnectionAborted.into())
        } else {
            match &self.kind {
                Kind::Tcp(socket, _) => (&mut &*socket).write(bytes),
                Kind::Unix(socket) => (&mut &*socket).write(bytes),
            }
        };
        self.blocked.store(false, Ordering::SeqCst);
        written
    }

    fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match &self.kind {
            Kind::Tcp(socket, _) => socket.set_read_timeout(timeout),
            Kind::Unix(socket) => socket.set_read_timeout(timeout),
        }
    }

    fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match &self.kind {
            Kind::Tcp(socket, _) => socket.set_write_timeout(timeout),
            Kind::Unix(socket) => socket.set_write_timeout(timeout),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.kind {
            Kind::Tcp(socket, _) => socket.as_fd(),
            Kind::Unix(socket) => socket.as_fd(),
        }
    }
}

impl Read for &Socket {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match &self.kind {
            Kind::Tcp(socket, _) => (&mut &*socket).read(out),
            Kind::Unix(socket) => (&mut &*socket).read(out),
        }
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // As a rule there is room, and this is all.
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match rustix::net::send(*self, bytes, flags) {
            Err(Errno::AGAIN) => self.write_waiting(bytes),
            written => Ok(written?),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Both directions of a connection.
#[derive(Debug)]
pub struct Stream {
    socket: Arc<Socket>,
    tls: Option<Box<ServerConnection>>,
    /// On the monotonic clock, in nanoseconds.
    deadline: Option<u64>,
}

impl Stream {
    /// A stream without TLS.
    pub fn new(socket: Arc<Socket>) -> Self {
        Self {
            socket,
            tls: None,
            deadline: None,
        }
    }

    /// The socket below.
    pub fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }

    /// Whether it has TLS.
    pub fn is_secure(&self) -> bool {
        self.tls.is_some()
    }

    /// Everything up to the next call has to happen within `time`.
    pub fn set_deadline(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.deadline = Some(monotonic_nanos().saturating_add(nanos));
    }

    /// From here on a read waits for `pause`, a write for `patience` (forever, if none), each time anew.
    ///
    /// # Errors
    /// If the socket cannot be told so.
    pub fn set_pace(&mut self, pause: Duration, patience: Option<Duration>) -> io::Result<()> {
        self.deadline = None;
        self.socket.set_read_timeout(Some(pause))?;
        self.socket.set_write_timeout(patience)
    }

    /// Goes over to TLS: the client's side of the handshake is what comes next on the socket. Blocks until it is done.
    ///
    /// # Errors
    /// If the handshake fails, or takes longer than the deadline.
    pub fn secure(&mut self, tls: &Tls) -> io::Result<()> {
        debug_assert!(self.tls.is_none(), "once");
        let connection = ServerConnection::new(tls.config.clone()).map_err(io::Error::other)?;
        let connection = self.tls.insert(Box::new(connection));
        let mut below = Below {
            socket: &self.socket,
            deadline: self.deadline,
        };
        while connection.is_handshaking() {
            if connection.complete_io(&mut below)? == (0, 0) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    /// Says good-bye, if TLS has a word for it, and ends both directions.
    pub fn close(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            // Whoever does not read it does not need it.
            let _ = self
                .socket
                .set_write_timeout(Some(Duration::from_millis(100)));
            let _ = tls.write_tls(&mut &*self.socket);
        }
        self.socket.shut_down(Shutdown::Both);
    }
}

impl Read for Stream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut below = Below {
            socket: &self.socket,
            deadline: self.deadline,
        };
        match &mut self.tls {
            None => below.read(out),
            Some(tls) => rustls::Stream::new(&mut **tls, &mut below).read(out),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut below = Below {
            socket: &self.socket,
            deadline: self.deadline,
        };
        match &mut self.tls {
            None => below.write(bytes),
            Some(tls) => rustls::Stream::new(&mut **tls, &mut below).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut below = Below {
            socket: &self.socket,
            deadline: self.deadline,
        };
        match &mut self.tls {
            None => Ok(()),
            Some(tls) => rustls::Stream::new(&mut **tls, &mut below).flush(),
        }
    }
}

/// The socket under a deadline.
struct Below<'s> {
    socket: &'s Socket,
    deadline: Option<u64>,
}

impl Below<'_> {
    /// What is left of the time.
    fn left(&self) -> io::Result<Option<Duration>> {
        let Some(deadline) = self.deadline else {
            return Ok(None);
        };
        match deadline.saturating_sub(monotonic_nanos()) {
            0 => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(Some(
                Duration::from_nanos(left).max(Duration::from_millis(1)),
            )),
        }
    }
}

impl Read for Below<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some(left) = self.left()? {
            self.socket.set_read_timeout(Some(left))?;
        }
        loop {
            match (&mut &*self.socket).read(out) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

impl Write for Below<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(left) = self.left()? {
            self.socket.set_write_timeout(Some(left))?;
        }
        (&mut &*self.socket).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
