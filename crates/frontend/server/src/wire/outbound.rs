//! Answers, gathered until they are flushed: one write for all messages of a Sync.
//!
//! Cost: a message is appended to one buffer; its length is put in when it ends. The buffer keeps `KEPT_BYTES`
//! between statements and nothing while a connection is parked.

/// Bytes that a buffer keeps when it is empty.
const KEPT_BYTES: usize = 64 << 10;
/// Bytes from which on a buffer is flushed in the middle of an answer.
pub const FLUSH_BYTES: usize = 32 << 10;

/// Messages on their way to the client.
#[derive(Debug, Default)]
pub struct Outbound {
    bytes: Vec<u8>,
}

impl Outbound {
    /// Nothing yet; takes no memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// What is gathered.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether nothing is gathered.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether it is time to write, although the answer goes on.
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= FLUSH_BYTES
    }

    /// Forgets what was written.
    pub fn clear(&mut self) {
        self.bytes.clear();
        if self.bytes.capacity() > KEPT_BYTES {
            self.bytes = Vec::new();
        }
    }

    /// Gives the memory back.
    pub fn release(&mut self) {
        debug_assert!(self.bytes.is_empty(), "answers would be lost");
        self.bytes = Vec::new();
    }

    /// The bytes themselves, for who appends whole messages.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Begins a message; the result goes to [`Outbound::end`].
    pub fn begin(&mut self, kind: u8) -> usize {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[kind, 0, 0, 0, 0]);
        start
    }

    /// Ends the message that began at `start`.
    pub fn end(&mut self, start: usize) {
        let length = self.bytes.len() - start - 1;
        let length = u32::try_from(length).expect("an answer's message is far below 4 GiB");
        self.bytes[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    }

    /// Takes back the message that began at `start`.
    pub fn abandon(&mut self, start: usize) {
        self.bytes.truncate(start);
    }

    /// A byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// A number of 16 bits.
    pub fn i16(&mut self, value: i16) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// A count in 16 bits, without sign.
    pub fn u16(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// A number of 32 bits.
    pub fn i32(&mut self, value: i32) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// A number of 32 bits without sign.
    pub fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// Bytes.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Text and its zero byte. Zero bytes inside are left out: they would end the text early, and the rest would be read as
    /// something else.
    pub fn text(&mut self, text: &str) {
        if text.as_bytes().contains(&0) {
            self.bytes.extend(text.bytes().filter(|byte| *byte != 0));
        } else {
            self.bytes.extend_from_slice(text.as_bytes());
        }
        self.bytes.push(0);
    }

    /// A message without a body.
    pub fn bare(&mut self, kind: u8) {
        self.bytes.extend_from_slice(&[kind, 0, 0, 0, 4]);
    }

    /// AuthenticationOk.
    pub fn authentication_ok(&mut self) {
        self.authentication(0, &[]);
    }

    /// AuthenticationSASL with the mechanisms in order of preference.
    pub fn authentication_sasl(&mut self, mechanisms: &[&str]) {
        let mut body = Vec::new();
        for mechanism in mechanisms {
            body.extend_from_slice(mechanism.as_bytes());
            body.push(0);
        }
        body.push(0);
        self.authentication(10, &body);
    }

    /// AuthenticationSASLContinue.
    pub fn authentication_sasl_continue(&mut self, data: &[u8]) {
        self.authentication(11, data);
    }

    /// AuthenticationSASLFinal.
    pub fn authentication_sasl_final(&mut self, data: &[u8]) {
        self.authentication(12, data);
    }

    fn authentication(&mut self, what: i32, body: &[u8]) {
        let start = self.begin(b'R');
        self.i32(what);
        self.raw(body);
        self.end(start);
    }

    /// ParameterStatus: a setting that clients are told.
    pub fn parameter_status(&mut self, name: &str, value: &str) {
        let start = self.begin(b'S');
        self.text(name);
        self.text(value);
        self.end(start);
    }

    /// BackendKeyData: what a CancelRequest must show.
    pub fn backend_key(&mut self, process: u32, key: u32) {
        let start = self.begin(b'K');
        self.u32(process);
        self.u32(key);
        self.end(start);
    }

    /// NegotiateProtocolVersion: the newest version that we speak, major and minor, and options that we do not know.
    pub fn negotiate_version(&mut self, version: u32, unknown: &[&str]) {
        let start = self.begin(b'v');
        self.u32(version);
        self.i32(i32::try_from(unknown.len()).expect("a startup packet has at most 10,000 bytes"));
        for option in unknown {
            self.text(option);
        }
        self.end(start);
    }

    /// ReadyForQuery with the state of the transaction: `I`, `T` or `E`.
    pub fn ready(&mut self, status: u8) {
        self.bytes.extend_from_slice(&[b'Z', 0, 0, 0, 5, status]);
    }

    /// CommandComplete.
    pub fn command_complete(&mut self, tag: &str) {
        let start = self.begin(b'C');
        self.text(tag);
        self.end(start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_count_themselves_and_not_the_kind() {
        let mut out = Outbound::new();
        out.ready(b'I');
        out.command_complete("SELECT 1");
        out.bare(b'1');
        let expected = b"Z\0\0\0\x05IC\0\0\0\x0dSELECT 1\x001\0\0\0\x04";
        assert_eq!(out.as_slice(), expected);
    }

    #[test]
    fn a_buffer_that_grew_gives_its_memory_back() {
        let mut out = Outbound::new();
        out.raw(&vec![0; 1 << 20]);
        assert!(out.is_full());
        out.clear();
        assert!(out.bytes.capacity() <= KEPT_BYTES);
    }
}
