//! Decisions about large GameDeployments, each brought into its state through decisions.

use std::time::Duration;

use gamedeployment_core::decide::decide;
use gamedeployment_core::plan::{Action, Plan};
use gamedeployment_core::pod::Pod;
use k8s_openapi::api::core::v1 as api;
use serde_json::{Value, json};

use crate::fleet::Fleet;
use crate::meter::Meter;
use crate::{Outcome, manifests};

/// Upper limit for a decision with nothing to do.
const NOTHING: Duration = Duration::from_millis(10);

pub(crate) fn measure(meter: &Meter, size: usize) -> Outcome<()> {
    idle(meter, size)?;
    scale_down(meter, size)?;
    asked(meter, size / 10)?;
    in_place(meter, size)?;
    let pod: api::Pod = serde_json::from_value(manifests::pod(1, "arena-1"))?;
    meter.cost("read a pod", None, || Pod::read(&pod))
}

fn gates() -> Value {
    let hook = json!({ "hook": { "templateName": "players" } });
    json!({ "preDeleteUpdateStrategy": hook, "preInplaceUpdateStrategy": hook })
}

fn new_image(fleet: &mut Fleet) {
    let template = manifests::template("registry.example.com/arena/game:v2");
    fleet.edit(|object| object.spec.template = template.into());
}

/// Measures a decision, and checks that it satisfies the predicate.
fn decision(
    meter: &Meter,
    figure: &str,
    most: Option<Duration>,
    fleet: &Fleet,
    expected: impl Fn(&Plan) -> bool,
) -> Outcome<()> {
    fleet.seen(|view, now| {
        let plan = decide(view, now);
        let text = format!(
            "{} actions, {}",
            plan.actions.len(),
            if plan.status.is_some() {
                "a new status"
            } else {
                "the same status"
            }
        );
        meter.fact(
            &format!("{figure}: is what was to be measured"),
            expected(&plan),
            &text,
        )?;
        meter.cost(figure, most, || decide(view, now))
    })
}

/// Measures a decision with nothing to do.
fn idle(meter: &Meter, size: usize) -> Outcome<()> {
    let figure = "decide: nothing to do";
    if !meter.wants(figure) {
        return Ok(());
    }
    let fleet = Fleet::launch(size, gates())?;
    decision(meter, figure, Some(NOTHING), &fleet, Plan::is_empty)
}

/// Measures the two decisions that start the deletion of all pods, each gated by a hook.
fn scale_down(meter: &Meter, size: usize) -> Outcome<()> {
    let (first, second) = ("decide: all are to go", "decide: all are to be asked");
    if !meter.wants(first) && !meter.wants(second) {
        return Ok(());
    }
    let mut fleet = Fleet::launch(size, gates())?;
    fleet.edit(|object| object.spec.replicas = Some(0));
    let all =
        |plan: &Plan, is: fn(&Action) -> bool| plan.actions.len() == size && plan.actions.iter().all(is);
    decision(meter, first, None, &fleet, |plan| {
        all(plan, |action| matches!(action, Action::RecordSelection(..)))
    })?;
    fleet.step()?;
    decision(meter, second, None, &fleet, |plan| {
        all(plan, |action| matches!(action, Action::CreateRun(..)))
    })
}

/// Measures a decision while the hooks of all pods run before their deletion.
fn asked(meter: &Meter, size: usize) -> Outcome<()> {
    let figure = "decide: a tenth of the pods, all being asked";
    if !meter.wants(figure) {
        return Ok(());
    }
    let mut fleet = Fleet::launch(size, gates())?;
    fleet.edit(|object| object.spec.replicas = Some(0));
    fleet.until(Plan::is_empty)?;
    let runs = fleet.runs.len();
    decision(meter, figure, None, &fleet, |plan| {
        plan.is_empty() && runs == size
    })
}

/// Measures decisions during an in-place update of a tenth of the pods.
fn in_place(meter: &Meter, size: usize) -> Outcome<()> {
    let asking = "decide: in place, a tenth being asked";
    if meter.wants(asking) {
        let mut fleet = Fleet::launch(size, gates())?;
        new_image(&mut fleet);
        fleet.until(Plan::is_empty)?;
        let runs = fleet.runs.len();
        decision(meter, asking, None, &fleet, |plan| {
            plan.is_empty() && runs == size / 10
        })?;
    }
    let written = "decide: in place, a tenth written";
    if meter.wants(written) {
        let mut fleet = Fleet::launch(size, json!({}))?;
        new_image(&mut fleet);
        fleet.until(Plan::is_empty)?;
        let updating = |plan: &Plan| {
            plan.gauges
                .is_some_and(|gauges| gauges.rollout.updating == size / 10)
        };
        decision(meter, written, None, &fleet, |plan| {
            plan.is_empty() && updating(plan)
        })?;
    }
    Ok(())
}
