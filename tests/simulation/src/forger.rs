//! Forged HookRuns: somebody who may write HookRuns has something else measured than the hook asks for. None of
//! them may open a gate.

use fastrand::Rng;
use gamedeployment_core::digest::digest;
use gamedeployment_core::spec_digest::SpecDigest;
use shared_api::HookRun;
use shared_api::hook_run::HookRunSpec;
use shared_api::metric::Argument;

use crate::objects::RunObject;
use crate::referee::is_notice;
use crate::setup::NAMES;
use crate::world::World;

/// Hexadecimal digits of the digest that a forger can match by trying.
const MATCHED: usize = 2;

impl World {
    /// Edits a run so that every measurement succeeds, and perhaps restores its spec once it is measured.
    pub(crate) fn soften_run(&mut self, run: &RunObject, dice: &mut Rng) {
        let name = run.id.name.clone();
        self.server.edit_run(&name, |run| soften(&mut run.spec));
        // An edit after the verdict changes nothing, but the operator may see it later than the verdict.
        if !run.read.phase.is_final() {
            self.referee.edited(&run.id.uid);
            self.disguise(&run.id.uid, &run.api.spec, dice);
        }
        self.tell(|| format!("somebody edits run {name}"));
    }

    /// Replaces a run with a forged one that always succeeds, with the same labels and annotations.
    pub(crate) fn forge_run(&mut self, run: &RunObject, dice: &mut Rng) {
        self.forge(run, run.id.name.clone(), false, dice);
    }

    /// Replaces a run with a forged one whose digest begins as that of the real one.
    pub(crate) fn forge_digest(&mut self, run: &RunObject, dice: &mut Rng) {
        self.forge(run, run.id.name.clone(), true, dice);
    }

    /// Creates a forged run under another name: one that the operator never chooses, or the one that it chooses
    /// for a pod that shares its instance id. Or moves the real run to a name that it never chooses. A notice gets the
    /// name of a hook's run.
    pub(crate) fn forge_another(&mut self, run: &RunObject, dice: &mut Rng) {
        let name = &run.id.name;
        let pod = run.read.pod_uid.clone().unwrap_or_default();
        match dice.u8(..3) {
            0 if is_notice(&run.api.metadata) => {
                let (revision, instance) = (&run.read.revision, &run.read.instance);
                let name = format!("pre-delete-hook-{revision}-{instance}-{}", NAMES[0]);
                self.forge(run, name, true, dice);
            }
            0 => self.forge(run, format!("{name}-{}", digest(&pod)), true, dice),
            1 => self.forge(run, format!("{name}-again"), true, dice),
            _ => {
                let _ = self.server.delete_run(name, None, None);
                let mut moved = HookRun::clone(&run.api);
                moved.metadata.name = Some(format!("{name}-again"));
                self.create_forged(&moved);
            }
        }
    }

    fn forge(&mut self, run: &RunObject, name: String, matches_digest: bool, dice: &mut Rng) {
        let _ = self.server.delete_run(&name, None, None);
        let mut forged = HookRun::clone(&run.api);
        forged.metadata.name = Some(name);
        soften(&mut forged.spec);
        if matches_digest {
            match_digest(&mut forged.spec, &run.api.spec);
        }
        if let Some(uid) = self.create_forged(&forged) {
            self.disguise(&uid, &run.api.spec, dice);
        }
    }

    /// Creates a forged run, and returns its UID.
    fn create_forged(&mut self, forged: &HookRun) -> Option<String> {
        let made = self.server.create_run(forged, self.now).ok()?;
        self.totals.forged += 1;
        self.tell(|| format!("somebody forges run {}", made.id.name));
        Some(made.id.uid.clone())
    }

    /// May have the real spec restored once the run is measured, in one write with some value of `terminate`.
    fn disguise(&mut self, uid: &str, real: &HookRunSpec, dice: &mut Rng) {
        let choices = [None, Some(None), Some(Some(false)), Some(Some(true))];
        let Some(terminate) = choices[dice.usize(..4)] else {
            return;
        };
        let spec = HookRunSpec {
            terminate,
            ..real.clone()
        };
        self.disguises.insert(uid.to_owned(), spec);
    }

    /// Restores the real spec of a forged run, if it has just been measured.
    pub(crate) fn restore_spec(&mut self, run: &RunObject) {
        let Some(real) = self.disguises.remove(&run.id.uid) else {
            return;
        };
        let name = run.id.name.clone();
        self.referee.something_else_happens();
        let terminate = real.terminate;
        self.tell(|| format!("somebody restores the spec of run {name}, with terminate {terminate:?}"));
        self.server.edit_run(&name, |run| run.spec = real);
        self.totals.restored += 1;
    }
}

/// Makes every response a success.
fn soften(spec: &mut HookRunSpec) {
    for metric in &mut spec.metrics {
        metric.success_condition = Some("true".to_owned());
        metric.failure_condition = None;
    }
}

/// Adds an argument with which the first digits of the digest are those of the real spec's.
fn match_digest(spec: &mut HookRunSpec, real: &HookRunSpec) {
    let digits = |spec: &HookRunSpec| SpecDigest::of(spec).to_string()[..MATCHED].to_owned();
    let wanted = digits(real);
    spec.args.get_or_insert_default().push(Argument {
        name: "note".to_owned(),
        ..Argument::default()
    });
    for number in 0.. {
        if let Some(note) = spec.args.iter_mut().flatten().last() {
            note.value = Some(number.to_string());
        }
        if digits(spec) == wanted {
            return;
        }
    }
}
