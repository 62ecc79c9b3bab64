//! A HookRun whose spec was made up so that a short digest of it is that of the real one.

use std::collections::HashMap;

use shared_api::metric::Argument;
use shared_api::{HookRun, Phase};

use super::tests::{chosen, ended, fleet, now, one};
use super::*;
use crate::digest::{canonical, digest, fnv};

const PRIME: u64 = 0x100_0000_01b3;
const LETTERS: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
/// Length of the argument that steers the digest.
const NOTE_LEN: usize = 42;

fn step(state: u64, byte: u8) -> u64 {
    (state ^ u64::from(byte)).wrapping_mul(PRIME)
}

/// Multiplicative inverse of [`PRIME`]: FNV-1a can be run backwards.
fn inverse() -> u64 {
    (0..7).fold(1_u64, |inverse, _| {
        inverse.wrapping_mul(2_u64.wrapping_sub(PRIME.wrapping_mul(inverse)))
    })
}

/// A partial sum and the letters that yield it.
type Sum = (u64, Vec<u8>);

/// Joins two lists to the sums whose low `bits` are those of `wanted`.
fn join(one: &[Sum], two: &[Sum], wanted: u64, bits: u32) -> Vec<Sum> {
    let low = |value: u64| value & (u64::MAX >> (64 - bits));
    let mut by_low: HashMap<u64, Vec<&Sum>> = HashMap::new();
    for sum in two {
        by_low.entry(low(sum.0)).or_default().push(sum);
    }
    let joined = one.iter().flat_map(|(sum, letters)| {
        let matching = by_low.get(&low(wanted.wrapping_sub(*sum))).into_iter().flatten();
        matching.map(|(other, more)| (sum.wrapping_add(*other), [letters.as_slice(), more].concat()))
    });
    joined.take(1 << 17).collect()
}

/// Finds letters that lead FNV-1a from one state to another, by a birthday search over eight lists.
fn bridge(from: u64, to: u64) -> String {
    let low = to & 0xff;
    let pairs = LETTERS.iter().flat_map(|a| LETTERS.iter().map(move |b| [*a, *b]));
    let starts = pairs.map(|pair| (pair, pair.iter().fold(from, |state, byte| step(state, *byte))));
    let (begin, start) = starts.into_iter().find(|(_, state)| state & 0xff == low).unwrap();
    // Five letters that leave the low byte as it is map each such state h to h * PRIME^5 + c.
    let power = PRIME.wrapping_pow(5);
    let number = |at: usize| (0..5).map(move |place| LETTERS[at / 62_usize.pow(place) % 62]);
    let block = |at: usize| {
        let state = number(at).fold(low, step);
        let c = state.wrapping_sub(low.wrapping_mul(power));
        (state & 0xff == low).then(|| (c, number(at).collect::<Vec<u8>>()))
    };
    let blocks: Vec<Sum> = (0..).filter_map(block).take(1 << 16).collect();
    let list = |place: u32| -> Vec<Sum> {
        let weight = power.wrapping_pow(7 - place);
        let weighed = blocks
            .iter()
            .map(|(c, letters)| (c.wrapping_mul(weight), letters.clone()));
        weighed.collect()
    };
    let lists: Vec<Vec<Sum>> = (0..8).map(list).collect();
    let target = to.wrapping_sub(start.wrapping_mul(power.wrapping_pow(8)));
    let low_byte = |at: usize| lists[at][0].0 & 0xff;
    let sums = [0, 2, 4].map(|at| low_byte(at).wrapping_add(low_byte(at + 1)) & 0xff);
    let [first, second, third] = sums;
    let remaining = target
        .wrapping_sub(first)
        .wrapping_sub(second)
        .wrapping_sub(third);
    let half = first.wrapping_add(second);
    let left = join(
        &join(&lists[0], &lists[1], first, 24),
        &join(&lists[2], &lists[3], second, 24),
        half,
        40,
    );
    let rest = target.wrapping_sub(half);
    let right = join(
        &join(&lists[4], &lists[5], third, 24),
        &join(&lists[6], &lists[7], remaining, 24),
        rest,
        40,
    );
    let (_, letters) = join(&left, &right, target, 64).into_iter().next().unwrap();
    String::from_utf8([begin.to_vec(), letters].concat()).unwrap()
}

/// Returns a run with a condition that always holds, whose spec has the FNV-1a digest of the real one.
fn forge(real: &HookRun) -> HookRun {
    let mut forged = real.clone();
    forged.spec.metrics[0].success_condition = Some("asInt(result) >= 0".to_owned());
    let marker = "#".repeat(NOTE_LEN);
    let arguments = forged.spec.args.get_or_insert_default();
    arguments.push(Argument {
        name: "note".to_owned(),
        value: Some(marker.clone()),
        ..Argument::default()
    });
    let text = canonical(&forged.spec);
    let (before, after) = text.split_once(&marker).unwrap();
    let wanted = fnv(canonical(&real.spec).as_bytes());
    let inverse = inverse();
    let to = after.bytes().rev().fold(wanted, |state, byte| {
        state.wrapping_mul(inverse) ^ u64::from(byte)
    });
    let note = bridge(fnv(before.as_bytes()), to);
    forged.spec.args.as_mut().unwrap().last_mut().unwrap().value = Some(note);
    forged
}

#[test]
fn a_forged_spec_with_the_digest_of_the_real_one_opens_nothing() {
    let (pod, fleet, around) = (chosen(&[]), fleet(), one("http://one"));
    let real = ended(&pod, &Intent::Delete, Phase::Successful, 1);
    let forged = forge(&real);
    assert_eq!(
        digest(&forged.spec),
        digest(&real.spec),
        "short digests are equal"
    );
    for (run, wanted) in [(&real, GateStateKind::Open), (&forged, GateStateKind::Stale)] {
        let cached = Run::read(run);
        let runs = [&cached];
        let gate = Gate::new(&fleet, &around, &runs, &[], now());
        assert_eq!(gate.assess(&pod, &Intent::Delete, &[]).state(), wanted);
    }
}
