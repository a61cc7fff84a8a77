//! Bytes that are nearly good: good ones, bent by a generator of numbers.

/// Numbers that look random and are the same for the same seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number (`SplitMix64`).
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if there is none.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.number() % (end.max(1) as u64)).unwrap_or(0)
    }

    fn byte(&mut self) -> u8 {
        // Those at which something begins or ends.
        const EDGES: [u8; 12] =
            [0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF, b'"', b'\\', b'{', b'[', b'-', b'.'];
        match self.below(2) {
            0 => EDGES[self.below(EDGES.len())],
            _ => self.number().to_le_bytes()[0],
        }
    }
}

/// The most bytes that bending makes of some.
const BYTES_MAX: usize = 8 * 1024;

/// One of the seeds, bent up to eight times.
pub fn bent(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(8) {
        let other = &seeds[random.below(seeds.len())];
        bend(&mut bytes, other, random);
        bytes.truncate(BYTES_MAX);
    }
    bytes
}

fn bend(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let place = random.below(bytes.len() + 1);
    let length = 1 + random.below(16);
    let end = bytes.len().min(place + length);
    match random.below(9) {
        0 => drop(bytes.drain(place..end)),
        1 => bytes.truncate(place),
        2 => bytes.insert(place, random.byte()),
        3 => {
            let copy = bytes[place..end].to_vec();
            bytes.splice(place..place, copy);
        }
        // A part of another one.
        4 => {
            let from = random.below(other.len() + 1);
            let part = &other[from..other.len().min(from + 4 * length)];
            bytes.splice(place..end, part.iter().copied());
        }
        // A length that is another one.
        5 => {
            let number = [0, 1, u32::MAX, u32::MAX >> 1, 0x10000][random.below(5)];
            for (byte, new) in bytes[place..].iter_mut().zip(number.to_le_bytes()) {
                *byte = new;
            }
        }
        6 => {
            if let Some(byte) = bytes.get_mut(place) {
                *byte ^= 1 << random.below(8);
            }
        }
        7 => {
            if let Some(byte) = bytes.get_mut(place) {
                *byte = byte.wrapping_add([1, 0xFF][random.below(2)]);
            }
        }
        _ => {
            if let Some(byte) = bytes.get_mut(place) {
                *byte = random.byte();
            }
        }
    }
}
