use proptest::prelude::*;

use super::*;

fn shard(text: &str) -> Shard {
    text.parse().unwrap()
}

fn all(count: u16) -> Vec<Shard> {
    (0..count)
        .map(|index| shard(&format!("{index}/{count}")))
        .collect()
}

#[test]
fn a_shard_is_read_as_it_is_written() {
    for text in ["0/1", "0/3", "2/3", "63/64"] {
        assert_eq!(shard(text).to_string(), text);
    }
}

#[test]
fn what_is_no_shard_is_named_with_what_would_be_one() {
    let wrong = [
        ("x", "\"x\" must have the form INDEX/COUNT, such as 0/3"),
        ("", "\"\" must have the form INDEX/COUNT"),
        ("1", "\"1\" must have the form INDEX/COUNT"),
        ("/3", "\"/3\" must have the form INDEX/COUNT"),
        ("-1/3", "\"-1/3\" must have the form INDEX/COUNT"),
        ("+1/3", "\"+1/3\" must have the form INDEX/COUNT"),
        ("01/3", "\"01/3\" must have the form INDEX/COUNT"),
        ("1/3/5", "\"1/3/5\" must have the form INDEX/COUNT"),
        ("0/99999", "\"0/99999\" must have the form INDEX/COUNT"),
        ("0/0", "\"0/0\" has a COUNT of 0; COUNT must be from 1 to 64"),
        ("0/65", "\"0/65\" has a COUNT of 65; COUNT must be from 1 to 64"),
        (
            "3/3",
            "\"3/3\" does not exist; INDEX starts at 0, so the last shard is 2/3",
        ),
    ];
    for (text, words) in wrong {
        let complaint = Shard::from_str(text).unwrap_err().to_string();
        assert!(complaint.starts_with(words), "{complaint}");
    }
}

/// During a rolling upgrade both releases work at once, so the mapping must never change.
#[test]
fn a_name_stays_where_it_is_from_release_to_release() {
    // Values from the authors' own tables.
    assert_eq!(fnv_1a(b""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(fnv_1a(b"foobar"), 0x8594_4171_f739_67e8);
    assert_eq!(weight(0, 0), 0xe220_a839_7b1d_cdaf);
    assert_eq!(weight(0, 1), 0x6e78_9e6a_a1b9_65f4);
    let known = [
        ("default", ["1/2", "1/3", "1/7"]),
        ("games", ["0/2", "0/3", "0/7"]),
        ("games-1", ["1/2", "1/3", "1/7"]),
        ("games-2", ["0/2", "2/3", "2/7"]),
        ("kube-system", ["0/2", "2/3", "6/7"]),
        ("tenant-eu-west", ["1/2", "1/3", "3/7"]),
    ];
    for (namespace, shards) in known {
        let found = shards.map(|text| Shard::of(namespace, shard(text).count).to_string());
        assert_eq!(found, shards, "{namespace}");
    }
}

#[test]
fn namespaces_are_spread_evenly() {
    for count in [2_u16, 3, 5, 16] {
        let mut of = vec![0_u32; usize::from(count)];
        for number in 0..4000 {
            of[usize::from(Shard::of(&format!("games-{number}"), NonZeroU16::new(count).unwrap()).index)] +=
                1;
        }
        let fair = 4000 / u32::from(count);
        let near = |found: &u32| found.abs_diff(fair) < fair / 5;
        assert!(of.iter().all(near), "{of:?}");
    }
}

#[test]
fn the_lease_of_a_shard_tells_which_it_is() {
    let lease = shard("1/3").lease("hook-operator");
    assert_eq!(lease, "hook-operator-shard-1-of-3");
    assert_eq!(Shard::of_lease("hook-operator", &lease), Some(shard("1/3")));
    let others = [
        "hook-operator",
        "gamedeployment-operator-shard-1-of-3",
        "hook-operator-shard-3-of-3",
        "hook-operator-shard-01-of-3",
        "hook-operator-shard-1",
        "hook-operator-2-shard-1-of-3",
    ];
    for other in others {
        assert_eq!(Shard::of_lease("hook-operator", other), None, "{other}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// No gap, no overlap.
    #[test]
    fn a_namespace_is_of_exactly_one_shard(namespace in ".{0,63}", count in 1..=MAX_SHARDS) {
        let having = all(count).into_iter().filter(|shard| shard.has(&namespace)).count();
        prop_assert_eq!(having, 1);
    }

    /// With one shard more, a namespace stays or moves to the new one.
    #[test]
    fn few_namespaces_move(namespace in "[a-z0-9-]{1,63}", count in 1..MAX_SHARDS) {
        let before = Shard::of(&namespace, NonZeroU16::new(count).unwrap()).index;
        let after = Shard::of(&namespace, NonZeroU16::new(count + 1).unwrap()).index;
        prop_assert!(after == before || after == count, "{} of {}, then {}", before, count, after);
    }
}
