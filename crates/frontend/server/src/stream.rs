//! The socket of a connection, with or without TLS.
//!
//! States: plain → [`Stream::secure`] → TLS. While a deadline is set (login), every read and write gets what is left of it, so that
//! a client that sends a byte now and then does not stay; without one a read returns `WouldBlock` after a pause, which is when a
//! connection is parked.
//!
//! Concurrency: a stream belongs to one thread at a time. [`Socket`] is shared with whoever has to end it: shutting down is
//! all that others do.

use crate::tls::Tls;
use rustls::ServerConnection;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;
use vellum_base::clock::monotonic_nanos;

/// A socket that was accepted.
#[derive(Debug)]
pub enum Socket {
    /// TCP, with the client's address.
    Tcp(TcpStream, SocketAddr),
    /// The Unix socket.
    Unix(UnixStream),
}

impl Socket {
    /// Number of the descriptor.
    pub fn descriptor(&self) -> RawFd {
        match self {
            Self::Tcp(socket, _) => socket.as_raw_fd(),
            Self::Unix(socket) => socket.as_raw_fd(),
        }
    }

    /// The client's address; none over the Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(_, address) => Some(*address),
            Self::Unix(_) => None,
        }
    }

    /// The address at which the client found the server; none over the Unix socket.
    pub fn own_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(socket, _) => socket.local_addr().ok(),
            Self::Unix(_) => None,
        }
    }

    /// Ends one direction or both, also under the feet of a thread that waits for it. An error means that it has ended.
    pub fn shut_down(&self, how: Shutdown) {
        let _ = match self {
            Self::Tcp(socket, _) => socket.shutdown(how),
            Self::Unix(socket) => socket.shutdown(how),
        };
    }

    fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(socket, _) => socket.set_read_timeout(timeout),
            Self::Unix(socket) => socket.set_read_timeout(timeout),
        }
    }

    fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(socket, _) => socket.set_write_timeout(timeout),
            Self::Unix(socket) => socket.set_write_timeout(timeout),
        }
    }
}

impl Read for &Socket {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket, _) => (&mut &*socket).read(out),
            Socket::Unix(socket) => (&mut &*socket).read(out),
        }
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket, _) => (&mut &*socket).write(bytes),
            Socket::Unix(socket) => (&mut &*socket).write(bytes),
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
