//! What holds whatever happens.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::world::World;

/// Cases of each property, unless `PROPTEST_CASES` says another number.
fn cases() -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(100_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

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
}
