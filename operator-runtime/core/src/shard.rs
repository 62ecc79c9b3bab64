//! Shard of a cluster's namespaces. A namespace belongs to exactly one shard as a whole: a workload, its pods
//! and its hooks have one owner. Its name alone decides which one, so that processes agree without talking to
//! each other. The mapping must therefore never change between releases; the tests pin names and their
//! shards.

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

/// Maximum number of shards. More are a typing error, because each of them watches the whole cluster.
const MAX_SHARDS: u16 = 64;

/// A shard, identified by its index and the number of shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shard {
    index: u16,
    count: NonZeroU16,
}

/// Error for a text that is not a shard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoShard {
    /// The text is not two numbers.
    #[error("{0:?} must have the form INDEX/COUNT, such as 0/3 for the first of three shards")]
    Form(String),
    /// The number of shards is zero or too large.
    #[error("{0:?} has a COUNT of {1}; COUNT must be from 1 to {MAX_SHARDS}")]
    Count(String, u16),
    /// The index is not below the number of shards.
    #[error("{0:?} does not exist; INDEX starts at 0, so the last shard is {last}/{1}", last = .1 - 1)]
    Index(String, u16),
}

impl FromStr for Shard {
    type Err = NoShard;

    fn from_str(text: &str) -> Result<Self, NoShard> {
        let form = || NoShard::Form(text.to_owned());
        let (index, count) = text.split_once('/').ok_or_else(form)?;
        let (index, count) = (number(index).ok_or_else(form)?, number(count).ok_or_else(form)?);
        let few = NonZeroU16::new(count).filter(|count| count.get() <= MAX_SHARDS);
        let several = few.ok_or_else(|| NoShard::Count(text.to_owned(), count))?;
        if index >= count {
            return Err(NoShard::Index(text.to_owned(), count));
        }
        Ok(Self {
            index,
            count: several,
        })
    }
}

/// Parses a number in its canonical form only, so that a shard has exactly one Lease name.
fn number(text: &str) -> Option<u16> {
    let number: u16 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

impl fmt::Display for Shard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.index, self.count)
    }
}

impl Shard {
    /// Number of shards.
    pub fn count(self) -> u16 {
        self.count.get()
    }

    /// Whether a namespace belongs to this shard.
    pub fn has(self, namespace: &str) -> bool {
        Self::of(namespace, self.count) == self
    }

    /// Returns the shard of a namespace: the first one with the greatest weight for it. With one shard more,
    /// namespaces move only to the new one; with one less, only those of the last one move.
    fn of(namespace: &str, count: NonZeroU16) -> Self {
        let name = fnv_1a(namespace.as_bytes());
        let (mut index, mut greatest) = (0, weight(name, 0));
        for other in 1..count.get() {
            let weight = weight(name, other);
            if weight > greatest {
                (index, greatest) = (other, weight);
            }
        }
        Self { index, count }
    }

    /// Returns the name of this shard's Lease.
    pub fn lease(self, program: &str) -> String {
        format!("{program}-shard-{}-of-{}", self.index, self.count)
    }

    /// Returns the shard of a Lease, if it is a shard Lease of this program.
    pub fn of_lease(program: &str, lease: &str) -> Option<Self> {
        let (index, count) = lease
            .strip_prefix(program)?
            .strip_prefix("-shard-")?
            .split_once("-of-")?;
        format!("{index}/{count}").parse().ok()
    }
}

/// Computes the 64-bit FNV-1a hash, <http://www.isthe.com/chongo/tech/comp/fnv/>.
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Returns the weight of a shard for the hash of a name, mixed with splitmix64,
/// <https://prng.di.unimi.it/splitmix64.c>, because FNV gives similar hashes to names that differ only in
/// their last letter.
fn weight(name: u64, shard: u16) -> u64 {
    let steps = u64::from(shard) + 1;
    let mut mixed = name.wrapping_add(steps.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests;
