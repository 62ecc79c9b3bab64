//! The shell writes the status only where nothing else was written: what a decision rests on must come about also so.

use shared_api::game_deployment::{Canary, CanaryPause, CanaryStep};

use crate::setup::{Look, template};
use crate::stories::fleet;
use crate::world::{Luck, World};

impl World {
    /// Decides as the shell does, until there is nothing to do.
    fn rest_as_the_shell(&mut self) {
        for _ in 0..100 {
            let moved = self.all_kubelets();
            let busy = !self.plan(&self.snapshot()).actions.is_empty();
            let all_but_status = Luck::Some(u32::MAX >> 1);
            let plan = self.step(if busy { all_but_status } else { Luck::All });
            if !moved && plan.is_empty() {
                return;
            }
        }
        panic!("no rest: {}", self.describe());
    }
}

#[test]
fn a_pause_that_is_ended_leads_to_the_pause_after_it() {
    let mut world = fleet(2, "RollingUpdate");
    let pause = || CanaryStep {
        pause: Some(CanaryPause { duration: None }),
        ..CanaryStep::default()
    };
    world.edit(|spec| {
        let steps = Some(vec![pause(), pause()]);
        spec.update_strategy.as_mut().unwrap().canary = Some(Canary { steps });
        spec.template = template(Look {
            game: 1,
            ..Look::default()
        });
    });
    for step in 0..2 {
        world.rest_as_the_shell();
        let status = world.object.status.clone().unwrap();
        assert_eq!(status.current_step_index, Some(step), "{status:#?}");
        assert_eq!(status.pause_conditions.len(), 1);
        world.edit(|spec| spec.update_strategy.as_mut().unwrap().paused = Some(false));
    }
    world.rest_as_the_shell();
    assert_eq!(world.object.status.as_ref().unwrap().current_step_index, Some(2));
}
