//! What holds whatever happens.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::world::World;

/// Cases of each property, unless `PROPTEST_CASES` says another number.
#[expect(
    clippy::disallowed_methods,
    reason = "tests: somebody may want more of them, or fewer"
)]
fn cases() -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(100_000)
}

pub fn config() -> ProptestConfig {
    ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn players_and_budgets_are_safe_while_everything_happens(
        code in any::<[u8; 8]>(),
        events in vec(any::<u16>(), 1..40),
    ) {
        let mut world = World::new(code);
        for event in events {
            world.happen(event, false);
        }
    }

    #[test]
    fn players_are_safe_while_writes_are_lost_and_views_are_old(
        code in any::<[u8; 8]>(),
        events in vec(any::<u16>(), 1..40),
    ) {
        let mut world = World::new(code);
        for event in events {
            world.happen(event, true);
        }
    }

    #[test]
    fn everything_comes_to_rest_at_what_is_wanted(
        code in any::<[u8; 8]>(),
        events in vec(any::<u16>(), 0..24),
    ) {
        let mut world = World::new(code);
        for event in events {
            world.happen(event, true);
        }
        world.settle();
    }

    /// Edits of steps, replicas, template, partition and `paused` at any moment of a canary rollout.
    #[test]
    fn no_edit_makes_a_canary_rollout_hang(
        code in any::<[u8; 8]>(),
        events in vec((0..7_usize, any::<u8>()), 0..24),
    ) {
        let mut code = code;
        code[5] = code[5] / 3 * 3;
        let mut world = World::new(code);
        for (kind, at) in events {
            let [decide, kubelet, say, replicas, look, paused, rest] = [0, 6, 12, 16, 17, 19, 21];
            let kind = [decide, kubelet, say, replicas, look, paused, rest][kind];
            // Of the last kind only the steps: of three codes in four.
            let at = if kind == rest { at | 2 } else { at };
            world.happen(u16::from_be_bytes([kind, at]), false);
        }
        world.settle();
    }
}

/// Histories that once did not come to rest, or killed a pod on the way.
#[test]
fn what_once_hung_comes_to_rest() {
    let histories: [([u8; 8], &[u16]); 2] = [
        (
            [160, 0, 0, 0, 0, 0, 0, 0],
            &[6144, 6144, 48498, 35073, 6144, 18432, 16178, 6144, 15632],
        ),
        // Hot patches that fall back to recreation, and replicas that fall.
        (
            [34, 152, 0, 0, 0, 0, 16, 15],
            &[4464, 0, 0, 4352, 1536, 1536, 0, 0, 4151],
        ),
    ];
    for (code, events) in histories {
        let mut world = World::new(code);
        for event in events {
            world.happen(*event, true);
        }
        world.settle();
    }
}
