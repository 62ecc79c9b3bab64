//! Containers that come and go while a question is open.

use crate::stories::fleet;
use crate::world::Luck;

#[test]
fn a_yes_does_not_count_for_a_container_that_has_started_since_the_question() {
    let mut world = fleet(2, "RollingUpdate");
    world.scale(1);
    world.step(Luck::All);
    let chosen = world.marked();
    let victim = world.pods.values().find(|cell| chosen.contains(&cell.read.uid));
    let name = victim.unwrap().read.name.clone();
    world.crash(&name, 0);
    world.step(Luck::All);
    assert_eq!(world.runs.len(), 1, "asked while the game is down");
    world.all_say_yes();
    world.kubelet(&name);
    let before = world.uids();
    world.step(Luck::All);
    world.step(Luck::All);
    assert_eq!(world.uids(), before, "nobody was asked about those who play now");
    world.settle();
    assert_eq!(world.uids().len(), 1);
}
