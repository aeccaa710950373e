//! Hashes as PostgreSQL makes them (Bob Jenkins' `lookup3` with its seed): clients compute advisory locks' numbers and shards by them.

use super::{Entry, strict};
use vellum_row::Value;

#[rustfmt::skip]
pub(super) static ENTRIES: &[Entry] = &[
    strict(400, "hashtext", "text", "int4", |a| Ok(short(of_bytes(a.text(0).as_bytes(), 0)))),
    strict(448, "hashtextextended", "text int8", "int8", |a| Ok(long(of_bytes(a.text(0).as_bytes(), a.long(1))))),
    strict(450, "hashint4", "int4", "int4", |a| Ok(short(of_word(a.int(0) as u32, 0)))),
    strict(425, "hashint4extended", "int4 int8", "int8", |a| Ok(long(of_word(a.int(0) as u32, a.long(1))))),
    strict(949, "hashint8", "int8", "int4", |a| Ok(short(of_word(folded(a.long(0)), 0)))),
    strict(442, "hashint8extended", "int8 int8", "int8", |a| Ok(long(of_word(folded(a.long(0)), a.long(1))))),
];

/// The state: its last two words are the hash.
struct State {
    a: u32,
    b: u32,
    c: u32,
}

fn short(state: State) -> Value {
    Value::Int4(state.c as i32)
}

fn long(state: State) -> Value {
    Value::Int8((u64::from(state.b) << 32 | u64::from(state.c)) as i64)
}

/// A long integer that is a short one hashes as that.
fn folded(value: i64) -> u32 {
    let (low, high) = (value as u32, (value >> 32) as u32);
    low ^ if value >= 0 { high } else { !high }
}

impl State {
    fn new(length: usize, seed: i64) -> Self {
        let start = 0x9e37_79b9u32
            .wrapping_add(length as u32)
            .wrapping_add(3_923_095);
        let mut state = Self {
            a: start,
            b: start,
            c: start,
        };
        if seed != 0 {
            state.a = state.a.wrapping_add((seed >> 32) as u32);
            state.b = state.b.wrapping_add(seed as u32);
            state.mix();
        }
        state
    }

    fn mix(&mut self) {
        let Self { a, b, c } = self;
        for (x, y, z, bits) in [
            (0, 2, 1, 4),
            (1, 0, 2, 6),
            (2, 1, 0, 8),
            (0, 2, 1, 16),
            (1, 0, 2, 19),
            (2, 1, 0, 4),
        ] {
            let mut words = [*a, *b, *c];
            words[x] = words[x].wrapping_sub(words[y]) ^ words[y].rotate_left(bits);
            words[y] = words[y].wrapping_add(words[z]);
            [*a, *b, *c] = words;
        }
    }

    fn finish(mut self) -> Self {
        let Self { a, b, c } = &mut self;
        for (x, y, bits) in [
            (2, 1, 14),
            (0, 2, 11),
            (1, 0, 25),
            (2, 1, 16),
            (0, 2, 4),
            (1, 0, 14),
            (2, 1, 24),
        ] {
            let mut words = [*a, *b, *c];
            words[x] = (words[x] ^ words[y]).wrapping_sub(words[y].rotate_left(bits));
            [*a, *b, *c] = words;
        }
        self
    }
}

fn of_word(word: u32, seed: i64) -> State {
    let mut state = State::new(4, seed);
    state.a = state.a.wrapping_add(word);
    state.finish()
}

fn of_bytes(bytes: &[u8], seed: i64) -> State {
    let mut state = State::new(bytes.len(), seed);
    let word = |bytes: &[u8]| {
        let mut word = [0; 4];
        word[..bytes.len()].copy_from_slice(bytes);
        u32::from_le_bytes(word)
    };
    let mut rest = bytes;
    while let Some((head, tail)) = rest.split_first_chunk::<12>() {
        state.a = state.a.wrapping_add(word(&head[..4]));
        state.b = state.b.wrapping_add(word(&head[4..8]));
        state.c = state.c.wrapping_add(word(&head[8..]));
        state.mix();
        rest = tail;
    }
    let part = |from: usize, to: usize| &rest[from.min(rest.len())..to.min(rest.len())];
    state.a = state.a.wrapping_add(word(part(0, 4)));
    state.b = state.b.wrapping_add(word(part(4, 8)));
    // The lowest byte is the length's.
    state.c = state.c.wrapping_add(word(part(8, 11)) << 8);
    state.finish()
}
