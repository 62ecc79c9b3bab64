//! HookRuns of 620 KB, which are short enough: each is measured, or waits and says so.

use futures::stream::{self, StreamExt as _};
use operator_tests::proof::{Extent, played};
use test_kit::eventually;

use crate::api::{Id, Kind};
use crate::printer::Row;
use crate::shapes::{Shape, spread};
use crate::templates::AT_ONCE;
use crate::world::World;
use crate::{PATIENCE, count, numbers};

const BYTES: usize = 620_000;
const DENSE: [Shape; 7] = [
    Shape::Zeros,
    Shape::Bodies,
    Shape::Names,
    Shape::Objects,
    Shape::Job,
    Shape::Bodies,
    Shape::Zeros,
];

/// HookRun of the crowd.
#[derive(Debug)]
pub(crate) struct Member {
    id: Id,
    shape: Shape,
}

impl Member {
    fn path(&self) -> String {
        format!("/{}", self.id.name)
    }
}

/// State that a member has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Measured,
    Waiting,
    Refused,
}

/// Stores the runs.
pub(crate) async fn store(world: &World<'_>) -> Vec<Member> {
    let dense = usize::try_from(Extent::asked().of(4, 14, 40)).unwrap();
    let shapes = spread(&DENSE, dense, count(18, 45)).into_iter().enumerate();
    let members = shapes.map(|(number, shape)| {
        let id = Id::new(Kind::HookRun, &world.hostile, &format!("crowd-{number:02}"));
        Member { id, shape }
    });
    let stored = stream::iter(members).map(|member| async move {
        let Member { id, shape } = &member;
        let url = world.hostile_server.url(&member.path());
        let run = shape.object(id.kind, &id.name, &url, BYTES);
        world.api.create(id.kind, &id.namespace, run).await;
        member
    });
    stored.buffer_unordered(AT_ONCE).collect().await
}

/// Waits until each run has been measured, waits with words, or is refused because its provider is off.
pub(crate) async fn are_served(world: &World<'_>, members: &[Member], about: &str) {
    let states = eventually(PATIENCE, || async {
        let rows = world.printer.rows(Kind::HookRun, &world.hostile).await?;
        let states = members.iter().map(|member| {
            let row = rows.get(&member.id.name).ok_or("it is gone")?;
            state(world, member, row).ok_or_else(|| format!("{member:?}: {row:?}"))
        });
        states.collect::<Result<Vec<State>, String>>()
    })
    .await;
    let number = |wanted: State| states.iter().filter(|state| **state == wanted).count();
    let (measured, waiting, refused) = (
        number(State::Measured),
        number(State::Waiting),
        number(State::Refused),
    );
    played(
        "fairness",
        &format!("HookRuns of 620 KB of one namespace, {about}"),
        &[
            ("measured", &measured),
            ("waiting", &waiting),
            ("refused", &refused),
        ],
    );
    assert!(measured > 0, "{states:?}");
    assert_eq!(measured + waiting + refused, members.len(), "{states:?}");
}

fn state(world: &World<'_>, member: &Member, row: &Row) -> Option<State> {
    let asked = world.hostile_server.counts(&member.path()).received;
    let (phase, reason) = (row["PHASE"].as_str(), row["REASON"].as_str());
    if member.shape == Shape::Job {
        return ((phase, reason, asked) == ("Error", "InvalidSpec", 0)).then_some(State::Refused);
    }
    if reason == "NoRoomForSpec" {
        // The message says how much is taken up, and of how much.
        return (numbers(&row["MESSAGE"]).len() > 1).then_some(State::Waiting);
    }
    (phase == "Running" && asked > 0).then_some(State::Measured)
}
