//! Room for the specs of one namespace: a run without room waits and says so, follows what users do, and gets its turn.

use std::cell::Cell;
use std::collections::BTreeSet;

use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use operator_tests::proof::played;
use operator_tests::{Operator, Start, alone, hooks_kubeconfig, kubectl};
use serde_json::json;
use test_kit::{Answer, ControlPlane, Webhook, eventually};

use crate::api::{Id, Kind, RawApi};
use crate::printer::{Printer, Row, Rows};
use crate::shapes::Shape;
use crate::world::{LOOPBACK, programs};
use crate::{MACHINE, MAX_SPEC, PATIENCE, assert_states, numbers};

/// Bytes of specs that hook-operator keeps, as text for its flag.
const MAX_BYTES: &str = "8388608";
/// Share of one namespace.
const SHARE: usize = 2 << 20;
const COUNT: usize = 9;
const BYTES: usize = 620_000;
const COMMENT: &str = "/spec/metrics/0/comment";
const WAITING: &str = "hookgate_hook_runs_waiting";

/// Tenant with large runs, another tenant, and hook-operator.
struct Room<'c> {
    control_plane: &'c ControlPlane,
    api: RawApi,
    printer: Printer,
    /// Namespace of large runs.
    many: String,
    /// Namespace of the other tenant.
    few: String,
    server: Webhook,
    start: Start,
    operator: Operator,
    /// Number of requests that the server had received when hook-operator started.
    before: Cell<usize>,
}

impl<'c> Room<'c> {
    async fn on(control_plane: &'c ControlPlane) -> Self {
        let (many, few) = (
            control_plane.namespace("a-many").await,
            control_plane.namespace("z-few").await,
        );
        let server = Webhook::start().unwrap();
        server.otherwise(Answer::json(json!({ "age": 1 })));
        let kubeconfig = hooks_kubeconfig(control_plane).await;
        let flags = [LOOPBACK, "--max-spec-bytes", MAX_BYTES];
        let start = Start::everywhere(programs().hooks, &kubeconfig).flags(&flags);
        let operator = Operator::start(&start);
        operator.ready().await;
        let api = RawApi::of(control_plane);
        Self {
            control_plane,
            printer: Printer::of(&api),
            api,
            many,
            few,
            server,
            start,
            operator,
            before: Cell::new(0),
        }
    }

    fn large(&self, name: &str) -> Id {
        Id::new(Kind::HookRun, &self.many, name)
    }

    /// Creates a run that asks at the path of its name every two seconds until the answer is good.
    async fn create(&self, namespace: &str, name: &str, shape: Shape, bytes: usize) {
        let url = self.server.url(&format!("/{name}"));
        let run = shape.object(Kind::HookRun, name, &url, bytes);
        let run = run.replacen("\"1h\"", "\"2s\"", 1);
        self.api.create(Kind::HookRun, namespace, run).await;
    }

    /// Whether a run has been measured since hook-operator started.
    fn is_asked(&self, name: &str) -> bool {
        let path = format!("/{name}");
        let mut requests = self.server.all_requests().into_iter().skip(self.before.get());
        requests.any(|request| request.path == path)
    }

    /// Whether a run has ever been measured.
    fn was_asked(&self, name: &str) -> bool {
        self.server.counts(&format!("/{name}")).received > 0
    }

    /// Waits until the row of a run satisfies the predicate.
    async fn until(&self, namespace: &str, name: &str, wanted: impl Fn(&Row) -> bool) -> Row {
        let holds = |rows: &Rows| rows.get(name).is_some_and(&wanted);
        let rows = self.printer.until(Kind::HookRun, namespace, holds).await;
        rows[name].clone()
    }

    /// Waits until each of this many large runs has a verdict, is measured, or waits. Returns the names of those that
    /// wait. The rows may be older than the requests.
    async fn settled(&self, count: usize) -> BTreeSet<String> {
        let is_settled = |(name, row): (&String, &Row)| is_over(row) || waits(row) != self.is_asked(name);
        let holds = |rows: &Rows| rows.len() == count && rows.iter().all(is_settled);
        let rows = self.printer.until(Kind::HookRun, &self.many, holds).await;
        let waiting = names(&rows, waits);
        for name in &waiting {
            // Both how much is taken up, and of how much.
            let message = &rows[name]["MESSAGE"];
            let numbers = numbers(message);
            assert!(numbers.len() > 1 && numbers.contains(&SHARE), "{name}: {message}");
        }
        self.until_waiting(waiting.len()).await;
        waiting
    }

    /// Waits until the metric counts this many runs that wait.
    async fn until_waiting(&self, count: usize) {
        eventually(PATIENCE, || async {
            let counted = self.operator.metric(WAITING, "").await;
            if usize::try_from(counted) == Ok(count) {
                Ok(())
            } else {
                Err(format!("{counted} instead of {count}"))
            }
        })
        .await;
    }

    async fn until_asked(&self, name: &str) {
        let path = format!("/{name}");
        self.server.await_requests(&path, 1, PATIENCE).await.unwrap();
    }

    /// Whether there is an event about a large run with this reason.
    async fn has_event(&self, name: &str, reason: &str) -> bool {
        let events: Api<Event> = Api::namespaced(self.control_plane.client(), &self.many);
        let events = events.list(&ListParams::default()).await.unwrap();
        events.items.iter().any(|event| {
            let about = event.regarding.as_ref().and_then(|object| object.name.as_deref());
            about == Some(name) && event.reason.as_deref() == Some(reason)
        })
    }
}

fn waits(row: &Row) -> bool {
    row["REASON"] == "NoRoomForSpec"
}

fn is_over(row: &Row) -> bool {
    ["Successful", "Failed", "Error", "Inconclusive"].contains(&row["PHASE"].as_str())
}

fn names(rows: &Rows, wanted: impl Fn(&Row) -> bool) -> BTreeSet<String> {
    let rows = rows.iter().filter(|(_, row)| wanted(row));
    rows.map(|(name, _)| name.clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_without_room_wait_with_words_and_get_their_turn() {
    let _turn = MACHINE.read().await;
    let control_plane = alone().await;
    let mut room = Room::on(&control_plane).await;
    let waiting = fills_up(&room).await;
    another_tenant_has_room(&room).await;
    follows_its_users(&room, &waiting).await;
    is_restarted(&mut room).await;
    one_makes_room(&room).await;
    all_get_their_turn(&room).await;
    an_open_run_grows(&room).await;
}

/// Creates large runs, one after another. As many are measured as have room.
async fn fills_up(room: &Room<'_>) -> BTreeSet<String> {
    for number in 0..COUNT {
        let shape = if number % 4 == 1 {
            Shape::Zeros
        } else {
            Shape::Text
        };
        let name = format!("large-{number}");
        room.create(&room.many, &name, shape, BYTES).await;
    }
    let waiting = room.settled(COUNT).await;
    let measured = COUNT - waiting.len();
    played(
        "fairness",
        "HookRuns of 620 KB of a namespace that has 2 MiB for their specs",
        &[("measured at once", &measured), ("waiting", &waiting.len())],
    );
    assert!(measured > 0 && measured * BYTES <= SHARE, "{waiting:?}");
    for name in &waiting {
        let row = room.until(&room.many, name, waits).await;
        assert_eq!(row["PHASE"], "Pending", "{name}: {row:?}");
    }
    let one = waiting.first().unwrap();
    eventually(PATIENCE, || async {
        room.has_event(one, "NoRoomForSpec").await.then_some(())
    })
    .await;
    waiting
}

/// Runs of another namespace are measured while those of the first one wait, large ones as well.
async fn another_tenant_has_room(room: &Room<'_>) {
    for (name, bytes) in [("small-1", 10), ("small-2", 10), ("long-1", BYTES)] {
        let path = format!("/{name}");
        room.server.on(&path, Answer::json(json!({ "age": 45 })));
        room.create(&room.few, name, Shape::Text, bytes).await;
        room.until_asked(name).await;
        room.until(&room.few, name, |row| row["PHASE"] == "Successful")
            .await;
    }
}

/// Users delete a run that waits, terminate another one, and shorten a third one.
async fn follows_its_users(room: &Room<'_>, waiting: &BTreeSet<String>) {
    let mut waiting = waiting.iter();
    let shortened = waiting.next().unwrap();
    let (deleted, terminated) = (waiting.next_back().unwrap(), waiting.next_back().unwrap());
    let delete = ["delete", "hookrun", deleted, "--namespace", &room.many];
    let _ = kubectl(room.control_plane, &delete, "");
    let terminate = json!({ "spec": { "terminate": true } }).to_string();
    room.api.merge(&room.large(terminated), &terminate).await;
    let row = room.until(&room.many, terminated, is_over).await;
    let end = (row["PHASE"].as_str(), row["REASON"].as_str());
    assert_eq!(end, ("Inconclusive", "Terminated"), "{row:?}");
    room.api.remove(&room.large(shortened), COMMENT).await;
    room.until_asked(shortened).await;
    let left = room.settled(COUNT - 1).await;
    assert_eq!(left, waiting.cloned().collect(), "those that still wait");
    for name in [deleted, terminated] {
        assert!(!room.was_asked(name), "{name}");
    }
}

/// Kills hook-operator, and starts it again. No more runs are measured than have room.
async fn is_restarted(room: &mut Room<'_>) {
    let before = room.settled(COUNT - 1).await;
    room.operator.process.kill_hard().unwrap();
    room.before.set(room.server.all_requests().len());
    room.operator = Operator::start(&room.start);
    room.operator.ready().await;
    room.server.on("/small-3", Answer::json(json!({ "age": 45 })));
    room.create(&room.few, "small-3", Shape::Text, 10).await;
    room.until_asked("small-3").await;
    let waiting = room.settled(COUNT - 1).await;
    assert_eq!(waiting.len(), before.len(), "{waiting:?} instead of {before:?}");
}

/// Deletes a large run that is measured: the next one gets its room.
async fn one_makes_room(room: &Room<'_>) {
    let waiting = room.settled(COUNT - 1).await;
    let rows = room.printer.rows(Kind::HookRun, &room.many).await.unwrap();
    let open = names(&rows, |row| !is_over(row) && !waits(row));
    // The first one is large: the one that was shortened had to wait.
    let first = open.first().unwrap();
    let delete = ["delete", "hookrun", first, "--namespace", &room.many];
    let _ = kubectl(room.control_plane, &delete, "");
    eventually(PATIENCE, || async {
        if waiting.iter().any(|name| room.is_asked(name)) {
            Ok(())
        } else {
            Err(format!("all of {waiting:?} still wait"))
        }
    })
    .await;
    let left = room.settled(COUNT - 2).await;
    assert_eq!(left.len() + 1, waiting.len(), "{left:?} of {waiting:?}");
}

/// Lets the server allow everything: all end, one after another.
async fn all_get_their_turn(room: &Room<'_>) {
    room.server.otherwise(Answer::json(json!({ "age": 45 })));
    let holds = |rows: &Rows| rows.values().all(is_over);
    let rows = room.printer.until(Kind::HookRun, &room.many, holds).await;
    // One was deleted while it waited, and one while it was measured.
    assert_eq!(rows.len(), COUNT - 2, "{rows:?}");
    let successful = names(&rows, |row| row["PHASE"] == "Successful");
    assert_eq!(successful.len(), COUNT - 3, "{rows:?}");
    for name in &successful {
        assert!(room.was_asked(name), "{name}");
    }
    room.until_waiting(0).await;
}

/// A run that is measured becomes too long to be read.
async fn an_open_run_grows(room: &Room<'_>) {
    room.server.on("/grows", Answer::json(json!({ "age": 1 })));
    room.create(&room.few, "grows", Shape::Text, 10).await;
    room.until_asked("grows").await;
    let grown = json!("x".repeat(MAX_SPEC)).to_string();
    let id = Id::new(Kind::HookRun, &room.few, "grows");
    room.api.set(&id, COMMENT, &grown).await;
    let row = room.until(&room.few, "grows", is_over).await;
    let end = (row["PHASE"].as_str(), row["REASON"].as_str());
    assert_eq!(end, ("Error", "InvalidSpec"), "{row:?}");
    assert_states(&row["MESSAGE"], MAX_SPEC + 1, MAX_SPEC);
}
