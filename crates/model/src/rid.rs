//! Resource ids: the `_rid` of everything.
//!
//! Bytes in base64, with `-` for `/`. SDKs take them apart, so the layout is
//! the service's:
//!
//! ```text
//! offer      3 bytes: number
//! database   4 bytes: number
//! container  8 bytes: database, number with the top bit set
//! key       16 bytes: database, zeros, number and kind (little-endian, 4 bytes each; the kind is 2)
//! item      16 bytes: container, number (little-endian; the top four bits say what it is: 0)
//! range     16 bytes: container, number (little-endian; the top four bits say what it is: 5)
//! ```

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatabaseRid(pub u32);

/// A container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerRid {
    /// The number of its database.
    pub database: u32,
    /// Its own number, up to [`ContainerRid::MAX`].
    pub container: u32,
}

/// An item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemRid {
    /// Its container.
    pub container: ContainerRid,
    /// Its number, up to [`ItemRid::MAX`].
    pub docno: u64,
}

/// A partition key range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RangeRid {
    /// Its container.
    pub container: ContainerRid,
    /// Its number, up to [`ItemRid::MAX`].
    pub range: u64,
}

/// A client encryption key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EncryptionKeyRid {
    /// The number of its database.
    pub database: u32,
    /// Its own number.
    pub key: u32,
}

/// An offer, of 24 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferRid(pub u32);

impl DatabaseRid {
    /// As `_rid` is written.
    pub fn encode(self) -> String {
        to_base64(&self.0.to_be_bytes())
    }

    /// Reads what [`DatabaseRid::encode`] writes, and nothing else.
    pub fn parse(text: &str) -> Option<DatabaseRid> {
        from_base64(text).map(|bytes| DatabaseRid(u32::from_be_bytes(bytes)))
    }
}

impl ContainerRid {
    /// The largest number of a container.
    pub const MAX: u32 = CONTAINER_BIT - 1;

    /// As `_rid` is written.
    pub fn encode(self) -> String {
        to_base64(&self.to_bytes())
    }

    /// Reads what [`ContainerRid::encode`] writes, and nothing else.
    pub fn parse(text: &str) -> Option<ContainerRid> {
        ContainerRid::from_bytes(from_base64(text)?)
    }

    /// The database it is in.
    pub fn database(self) -> DatabaseRid {
        DatabaseRid(self.database)
    }

    fn to_bytes(self) -> [u8; 8] {
        debug_assert!(self.container <= Self::MAX);
        let number = (u64::from(self.database) << 32) | u64::from(self.container | CONTAINER_BIT);
        number.to_be_bytes()
    }

    fn from_bytes(bytes: [u8; 8]) -> Option<ContainerRid> {
        let number = u64::from_be_bytes(bytes);
        let database = u32::try_from(number >> 32).ok()?;
        let container = u32::try_from(number & u64::from(u32::MAX)).ok()?;
        let is_container = container & CONTAINER_BIT != 0;
        is_container.then_some(ContainerRid { database, container: container & Self::MAX })
    }
}

impl ItemRid {
    /// The largest number of an item: 60 bits.
    pub const MAX: u64 = (1 << KIND_SHIFT) - 1;

    /// As `_rid` is written.
    pub fn encode(self) -> String {
        encode_part(self.container, self.docno, ITEM)
    }

    /// Reads what [`ItemRid::encode`] writes, and nothing else.
    pub fn parse(text: &str) -> Option<ItemRid> {
        let (container, docno) = parse_part(text, ITEM)?;
        Some(ItemRid { container, docno })
    }
}

impl RangeRid {
    /// As `_rid` is written.
    pub fn encode(self) -> String {
        encode_part(self.container, self.range, RANGE)
    }

    /// Reads what [`RangeRid::encode`] writes, and nothing else.
    pub fn parse(text: &str) -> Option<RangeRid> {
        let (container, range) = parse_part(text, RANGE)?;
        Some(RangeRid { container, range })
    }
}

impl EncryptionKeyRid {
    /// As `_rid` is written.
    pub fn encode(self) -> String {
        let EncryptionKeyRid { database, key } = self;
        let parts =
            [database.to_be_bytes(), NO_USER, key.to_le_bytes(), ENCRYPTION_KEY.to_le_bytes()];
        to_base64(&parts.concat())
    }

    /// Reads what [`EncryptionKeyRid::encode`] writes, and nothing else.
    pub fn parse(text: &str) -> Option<EncryptionKeyRid> {
        let bytes: [u8; 16] = from_base64(text)?;
        let (database, rest) = bytes.split_first_chunk()?;
        let (user, rest) = rest.split_first_chunk::<4>()?;
        let (key, kind) = rest.split_first_chunk()?;
        let is_key = *user == NO_USER && *kind == ENCRYPTION_KEY.to_le_bytes();
        let (database, key) = (u32::from_be_bytes(*database), u32::from_le_bytes(*key));
        is_key.then_some(EncryptionKeyRid { database, key })
    }
}

impl OfferRid {
    /// The largest number of an offer: 24 bits.
    pub const MAX: u32 = (1 << 24) - 1;

    /// As `_rid` is written.
    pub fn encode(self) -> String {
        debug_assert!(self.0 <= Self::MAX);
        let [_, bytes @ ..] = self.0.to_be_bytes();
        to_base64(&bytes)
    }

    /// Reads what [`OfferRid::encode`] writes, and nothing else.
    pub fn parse(text: &str) -> Option<OfferRid> {
        let [a, b, c] = from_base64(text)?;
        Some(OfferRid(u32::from_be_bytes([0, a, b, c])))
    }
}

/// Whether `ids` are the RIDs of a resource and of all that it is in, from its
/// database on. Each begins with the one before it.
pub fn is_line<'a>(ids: impl IntoIterator<Item = &'a str>) -> bool {
    let mut line = Vec::new();
    let mut sizes = LINE_BYTES.iter();
    ids.into_iter().all(|id| {
        let Some(bytes) = decode(id) else { return false };
        let is_inside = sizes.next() == Some(&bytes.len()) && bytes.starts_with(&line);
        let is_key = line.len() == 4 && EncryptionKeyRid::parse(id).is_some();
        let is_next = is_inside || is_key && bytes.starts_with(&line);
        line = bytes;
        is_next
    })
}

/// A database, what is in it, what is in that, and what is in an item.
const LINE_BYTES: [usize; 4] = [4, 8, 16, 20];

/// Set in the number of a container; a user has it clear.
const CONTAINER_BIT: u32 = 1 << 31;
const KIND_SHIFT: u32 = 60;
const ITEM: u64 = 0;
const RANGE: u64 = 5;
/// Where others have the number of a user.
const NO_USER: [u8; 4] = [0; 4];
const ENCRYPTION_KEY: u32 = 2;

fn encode_part(container: ContainerRid, number: u64, kind: u64) -> String {
    debug_assert!(number <= ItemRid::MAX);
    let number = (number & ItemRid::MAX) | (kind << KIND_SHIFT);
    to_base64(&[container.to_bytes(), number.to_le_bytes()].concat())
}

fn parse_part(text: &str, kind: u64) -> Option<(ContainerRid, u64)> {
    let bytes: [u8; 16] = from_base64(text)?;
    let (container, number) = bytes.split_first_chunk()?;
    let container = ContainerRid::from_bytes(*container)?;
    let number = u64::from_le_bytes(number.try_into().ok()?);
    (number >> KIND_SHIFT == kind).then_some((container, number & ItemRid::MAX))
}

fn to_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes).replace('/', "-")
}

fn from_base64<const N: usize>(text: &str) -> Option<[u8; N]> {
    decode(text)?.try_into().ok()
}

fn decode(text: &str) -> Option<Vec<u8>> {
    // Nothing longer is a rid, and a name can be long.
    if text.len() > 28 || text.contains('/') {
        return None;
    }
    STANDARD.decode(text.replace('-', "/")).ok()
}

macro_rules! display {
    ($($rid:ident)+) => {
        $(impl fmt::Display for $rid {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.encode())
            }
        })+
    };
}

display! { DatabaseRid ContainerRid ItemRid RangeRid EncryptionKeyRid OfferRid }

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIRST: ContainerRid = ContainerRid { database: 0, container: 0 };

    #[test]
    fn the_samples_of_the_service() {
        assert_eq!(DatabaseRid(0).encode(), "AAAAAA==");
        assert_eq!(FIRST.encode(), "AAAAAIAAAAA=");
        assert_eq!(RangeRid { container: FIRST, range: 2 }.encode(), "AAAAAIAAAAACAAAAAAAAUA==");
        assert_eq!(ItemRid { container: FIRST, docno: 2 }.encode(), "AAAAAIAAAAACAAAAAAAAAA==");
        let key = EncryptionKeyRid { database: 1, key: 3 };
        assert_eq!(key.encode(), "AAAAAQAAAAADAAAAAgAAAA==");
        assert_eq!(OfferRid(0x00F4_BA75).encode(), "9Lp1");
        assert_eq!(OfferRid::parse("9Lp1"), Some(OfferRid(0x00F4_BA75)));
    }

    #[test]
    fn a_slash_is_a_minus() {
        assert_eq!(DatabaseRid(u32::MAX).encode(), "-----w==");
        assert_eq!(DatabaseRid::parse("-----w=="), Some(DatabaseRid(u32::MAX)));
        assert_eq!(DatabaseRid::parse("/////w=="), None);
    }

    #[test]
    fn other_texts_are_not_rids() {
        for text in
            ["", "testdb12", "AAAAAA", "AAAAAA=", "AAAAAB==", "AAAA AA==", "AAAAAIAAAAA=", "ü"]
        {
            assert_eq!(DatabaseRid::parse(text), None, "{text}");
        }
        // A user, not a container.
        assert_eq!(ContainerRid::parse("AAAAAAAAAAA="), None);
        // A range is not an item, and an item not a range.
        assert_eq!(ItemRid::parse("AAAAAIAAAAACAAAAAAAAUA=="), None);
        assert_eq!(RangeRid::parse("AAAAAIAAAAACAAAAAAAAAA=="), None);
        // A key is in a database, not in a container, and not any other thing.
        assert_eq!(EncryptionKeyRid::parse("AAAAAIAAAAACAAAAAgAAAA=="), None);
        assert_eq!(EncryptionKeyRid::parse("AAAAAQAAAAADAAAAAQAAAA=="), None);
        assert_eq!(ItemRid::parse("AAAAAQAAAAADAAAAAgAAAA=="), None);
        assert_eq!(ItemRid::parse(&"A".repeat(1000)), None);
    }

    #[test]
    fn a_line_of_rids_goes_from_a_database_inwards() {
        let container = ContainerRid { database: 7, container: 3 };
        let (database, inside) = (container.database().encode(), container.encode());
        let item = ItemRid { container, docno: 9 }.encode();
        let range = RangeRid { container, range: 0 }.encode();
        let other = ContainerRid { database: 8, container: 3 }.encode();
        let key = EncryptionKeyRid { database: 7, key: 3 }.encode();
        let other_key = EncryptionKeyRid { database: 8, key: 3 }.encode();
        for (ids, expected) in [
            (vec![&*database], true),
            (vec![&*database, &inside], true),
            (vec![&*database, &inside, &item], true),
            (vec![&*database, &inside, &range], true),
            (vec![&*database, &key], true),
            (vec!["d"], false),
            (vec![&*key], false),
            (vec![&*database, &other_key], false),
            (vec![&*database, &inside, &key], false),
            // Bytes in base64, but not four.
            (vec!["testdb12"], false),
            (vec!["test"], false),
            (vec![&*database, "c"], false),
            (vec!["d", &*inside], false),
            (vec![&*inside], false),
            (vec![&*database, &other], false),
            (vec![&*database, &inside, "a"], false),
            (vec![&*database, &database], false),
            (vec![&*database, &item], false),
        ] {
            assert_eq!(is_line(ids.iter().copied()), expected, "{ids:?}");
        }
    }

    proptest! {
        #[test]
        fn rids_are_read_back(database: u32, container in 0..=ContainerRid::MAX, number in 0..=ItemRid::MAX, offer in 0..=OfferRid::MAX) {
            let container = ContainerRid { database, container };
            prop_assert_eq!(DatabaseRid::parse(&DatabaseRid(database).encode()), Some(DatabaseRid(database)));
            prop_assert_eq!(ContainerRid::parse(&container.encode()), Some(container));
            let item = ItemRid { container, docno: number };
            prop_assert_eq!(ItemRid::parse(&item.encode()), Some(item));
            let range = RangeRid { container, range: number };
            prop_assert_eq!(RangeRid::parse(&range.encode()), Some(range));
            let key = EncryptionKeyRid { database, key: offer };
            prop_assert_eq!(EncryptionKeyRid::parse(&key.encode()), Some(key));
            prop_assert_eq!(OfferRid::parse(&OfferRid(offer).encode()), Some(OfferRid(offer)));
        }
    }
}
