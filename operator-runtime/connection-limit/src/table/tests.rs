use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

fn peer(number: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, number).into()
}

/// Table with connections of these addresses; each value is the number of its connection.
fn table(max: usize, peers: &[u8]) -> (Table<usize>, Vec<Id>) {
    let mut table = Table::new(max);
    let admit = |(number, of): (usize, &u8)| table.admit(peer(*of), number).unwrap().0;
    let ids = peers.iter().enumerate().map(admit).collect();
    (table, ids)
}

#[test]
fn the_connection_that_waited_longest_at_the_largest_address_makes_room() {
    // Addresses of the connections, numbers of the busy ones, address of the newcomer, and the victim.
    type Row = (&'static [u8], &'static [usize], u8, Option<usize>);
    let rows: [Row; 9] = [
        (&[1, 2, 2, 2], &[], 3, Some(1)),
        (&[1, 2, 2, 2], &[], 1, Some(1)),
        (&[1, 2, 2, 2], &[1, 2], 1, Some(3)),
        // The newcomer counts: its own address has the most.
        (&[1, 1, 2, 2], &[], 2, Some(2)),
        (&[1, 2, 3, 4], &[], 5, Some(0)),
        // Nobody loses a connection to an address that has more.
        (&[1, 2, 2, 2], &[1, 2, 3], 2, None),
        (&[1, 2, 2, 2], &[1, 2, 3], 3, Some(0)),
        // A response is given up for an address with fewer connections alone.
        (&[2, 2, 2, 2], &[0, 1, 2, 3], 1, Some(0)),
        (&[1, 1, 2, 2], &[0, 1, 2, 3], 1, None),
    ];
    for (peers, busy, newcomer, wanted) in rows {
        let (mut table, ids) = table(4, peers);
        for number in busy {
            table.progress(ids[*number], true);
        }
        let admitted = table.admit(peer(newcomer), 9);
        let victim = admitted.and_then(|(_, victim)| victim);
        assert_eq!(victim, wanted, "{peers:?} {busy:?} {newcomer}");
        assert_eq!(table.len(), 4);
    }
}

#[test]
fn progress_keeps_a_connection_and_the_end_of_a_request_frees_it() {
    let (mut table, ids) = table(3, &[1, 1, 1]);
    table.progress(ids[0], false);
    table.progress(ids[1], true);
    assert_eq!(table.admit(peer(1), 3).unwrap().1, Some(2));
    assert_eq!(table.admit(peer(1), 4).unwrap().1, Some(0));
    table.progress(ids[1], false);
    assert_eq!(table.admit(peer(1), 5).unwrap().1, Some(3));
    table.remove(ids[1]);
    table.progress(ids[1], true);
    assert_eq!(table.admit(peer(1), 6).unwrap().1, None);
}

#[test]
fn a_client_has_one_address_however_it_is_written() {
    let mut table = Table::new(2);
    let mapped = Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped();
    table.admit(peer(2), 0);
    table.admit(mapped.into(), 1);
    assert_eq!(table.admit(peer(1), 2).unwrap().1, Some(1));
}

proptest! {
    /// A client with one connection loses it to nobody but a new client, and only while no address with more has one that
    /// waits. A new client is let in, whatever others do.
    #[test]
    fn a_crowd_takes_nothing_from_those_with_one_connection(
        steps in prop::collection::vec((0_u8..4, 0_u8..3, any::<prop::sample::Index>()), 0..200),
    ) {
        let mut table = Table::new(8);
        let mut alive = vec![table.admit(peer(100), 0).unwrap().0];
        for (number, (of, step, which)) in steps.into_iter().enumerate() {
            match step {
                0 => {
                    let count = |of_entry| table.counts[&of_entry] + usize::from(of_entry == peer(of));
                    let mut entries = table.entries.values();
                    let has_victim = entries.any(|entry| !entry.is_busy && count(entry.peer) > 1);
                    let is_first = !table.counts.contains_key(&peer(of));
                    if let Some((id, victim)) = table.admit(peer(of), number + 1) {
                        alive.push(id);
                        prop_assert!(victim != Some(0) || is_first && !has_victim);
                    }
                }
                1 => table.progress(alive[which.index(alive.len())], true),
                _ => table.progress(alive[which.index(alive.len())], false),
            }
            prop_assert!(table.len() <= 8);
            prop_assert_eq!(table.counts.values().sum::<usize>(), table.len());
        }
        prop_assert!(table.admit(peer(200), usize::MAX).is_some());
    }
}
