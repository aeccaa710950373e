//! The rows of the catalog: one system tree, versioned like every other, so that DDL is transactional.
//!
//! Layout of keys: `b't', name` for a table; `b'i', table id u32 big-endian, name` for an index.
//!
//! Layout of values (little-endian): `u8 version = 1, u32 id, u64 root page`, then for an index its key
//! description (see `table::key_description`).

use vellum_base::codec::{Put, Reader};
use vellum_base::{PageId, TableId};
use vellum_table::KeyDescription;
pub use vellum_table::prefix_end;

/// The longest name of a table or index, in bytes.
pub const NAME_BYTES_MAX: usize = 255;

const VERSION: u8 = 1;
const TABLE: u8 = b't';
const INDEX: u8 = b'i';

/// What the catalog says of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableEntry {
    /// Number of the table; never used for another.
    pub id: TableId,
    /// Root page of its tree.
    pub root: PageId,
}

/// What the catalog says of an index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexEntry {
    /// Number of the index; never used for another table or index.
    pub id: TableId,
    /// Root page of its tree.
    pub root: PageId,
    /// What it is keyed by.
    pub key: KeyDescription,
}

/// Whether a table or index may have this name.
pub fn name_is_valid(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_BYTES_MAX
}

/// Catalog key of the table `name`.
pub fn table_key(name: &str) -> Vec<u8> {
    let mut key = vec![TABLE];
    key.extend_from_slice(name.as_bytes());
    key
}

/// Catalog key of the index `name` of a table.
pub fn index_key(table: TableId, name: &str) -> Vec<u8> {
    let mut key = index_prefix(table);
    key.extend_from_slice(name.as_bytes());
    key
}

/// What the catalog keys of all indexes of a table start with.
pub fn index_prefix(table: TableId) -> Vec<u8> {
    let mut key = vec![INDEX];
    key.extend_from_slice(&table.get().to_be_bytes());
    key
}

/// What the catalog keys of all tables start with.
pub fn table_prefix() -> Vec<u8> {
    vec![TABLE]
}

/// The name in a catalog key of a table or an index; `None` if the key is neither.
pub fn name_in_key(key: &[u8]) -> Option<&str> {
    let (kind, rest) = key.split_first()?;
    let name = match *kind {
        TABLE => rest,
        INDEX => rest.get(4..)?,
        _ => return None,
    };
    std::str::from_utf8(name).ok()
}

impl TableEntry {
    /// The persisted form.
    pub fn encode(&self) -> Vec<u8> {
        encode_common(self.id, self.root)
    }

    /// Reads the persisted form; `None` if it is not one.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let (id, root) = decode_common(&mut reader)?;
        reader.rest().is_empty().then_some(Self { id, root })
    }
}

impl IndexEntry {
    /// The persisted form.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = encode_common(self.id, self.root);
        out.extend_from_slice(&self.key.encode());
        out
    }

    /// Reads the persisted form; `None` if it is not one.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let (id, root) = decode_common(&mut reader)?;
        let key = KeyDescription::decode(&mut reader)?;
        reader.rest().is_empty().then_some(Self { id, root, key })
    }
}

fn encode_common(id: TableId, root: PageId) -> Vec<u8> {
    let mut out = vec![VERSION];
    out.put_u32(id.get());
    out.put_u64(root.get());
    out
}

fn decode_common(reader: &mut Reader<'_>) -> Option<(TableId, PageId)> {
    if reader.u8()? != VERSION {
        return None;
    }
    let id = TableId(reader.u32()?);
    let root = PageId(reader.u64()?);
    (!id.is_zero() && !root.is_zero()).then_some((id, root))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_table::{KeyPart, Source};

    #[test]
    fn entries_are_read_back_and_damage_is_refused() {
        let table = TableEntry {
            id: TableId(3),
            root: PageId(9),
        };
        assert_eq!(TableEntry::decode(&table.encode()), Some(table.clone()));
        assert_eq!(TableEntry::decode(&table.encode()[1..]), None);
        let part = KeyPart {
            source: Source::Value,
            start: 0,
            end: Some(4),
        };
        let key = KeyDescription::new(vec![part], false).unwrap();
        let index = IndexEntry {
            id: TableId(4),
            root: PageId(10),
            key,
        };
        assert_eq!(IndexEntry::decode(&index.encode()), Some(index.clone()));
        assert_eq!(TableEntry::decode(&index.encode()), None, "trailing bytes");
    }

    #[test]
    fn prefix_end_is_the_first_key_behind_the_prefix() {
        assert_eq!(prefix_end(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(prefix_end(&[1, 255]), Some(vec![2]));
        assert_eq!(prefix_end(&[255]), None);
    }

    #[test]
    fn names_come_back_from_keys() {
        assert_eq!(name_in_key(&table_key("orders")), Some("orders"));
        assert_eq!(
            name_in_key(&index_key(TableId(7), "by_name")),
            Some("by_name")
        );
        assert_eq!(name_in_key(b"x"), None);
        assert!(!name_is_valid("") && !name_is_valid(&"n".repeat(256)) && name_is_valid("n"));
    }
}
