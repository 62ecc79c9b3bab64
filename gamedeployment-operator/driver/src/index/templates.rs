//! Cached HookTemplates. The specs of one namespace together have a limit, because a tenant may create any number.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use gamedeployment_core::unusable_template::MAX_TEMPLATE_BYTES_OF_NAMESPACE;

use crate::NamespacedName;
use crate::store::Store;
use crate::watch_event::{Event, Template};

/// HookTemplates, usable or not.
#[derive(Debug, Default)]
pub(super) struct Templates {
    store: Store<Template>,
    /// Bytes of the specs that are kept, by namespace.
    bytes: HashMap<String, usize>,
}

impl Templates {
    /// Whether a list has been read to its end.
    pub(super) fn is_synced(&self) -> bool {
        self.store.is_synced()
    }

    /// Returns the template of this key.
    pub(super) fn get(&self, key: &NamespacedName) -> Option<&Template> {
        self.store.get(key)
    }

    /// Names of the templates of a namespace.
    pub(super) fn names_in(&self, namespace: &str) -> impl Iterator<Item = &str> {
        // Templates have no controller.
        let keys = self.store.orphan_keys_in(namespace);
        keys.map(|(_, name)| name.as_str())
    }

    /// Applies a watch event. Returns the keys of the templates that changed.
    pub(super) fn apply_event(&mut self, event: Event<Template>, now: Duration) -> BTreeSet<NamespacedName> {
        let mut changed = BTreeSet::new();
        match event {
            Event::Init => self.store.begin_list(),
            Event::InitApply(key, template) | Event::Apply(key, template) => {
                let template = self.fitted(&key, template);
                let known = self.store.get(&key);
                if known.is_none_or(|known| known.differs(&template)) {
                    changed.insert(key.clone());
                }
                let bytes = template.bytes;
                let (before, is_stored) = self.store.observe(key.clone(), template);
                if is_stored {
                    self.count(&key.0, before.as_ref(), bytes);
                }
            }
            Event::Delete(key, uid) => {
                let gone = self.store.forget(&key, &uid, now);
                self.count(&key.0, gone.as_ref(), 0);
                changed.insert(key);
            }
            Event::InitDone => {
                for (key, gone) in self.store.end_list(now) {
                    self.count(&key.0, Some(&gone), 0);
                    changed.insert(key);
                }
            }
        }
        changed
    }

    /// Drops the spec of a template for which its namespace has no room. It stays so until its next event or list.
    fn fitted(&self, key: &NamespacedName, template: Template) -> Template {
        let known = self.store.get(key).map_or(0, |known| known.bytes);
        let all = self.bytes.get(&key.0).copied().unwrap_or(0);
        if all.saturating_sub(known).saturating_add(template.bytes) > MAX_TEMPLATE_BYTES_OF_NAMESPACE {
            return template.without_room(&key.0);
        }
        template
    }

    /// Counts the bytes of a spec that is kept, in place of those of the template before.
    fn count(&mut self, namespace: &str, before: Option<&Template>, bytes: usize) {
        let freed = before.map_or(0, |before| before.bytes);
        let all = self.bytes.entry(namespace.to_owned()).or_default();
        *all = all.saturating_add(bytes).saturating_sub(freed);
        if *all == 0 {
            self.bytes.remove(namespace);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gamedeployment_core::unusable_template::{TooLarge, UnusableTemplate};

    use super::*;

    const MIB: usize = 1024 * 1024;

    fn key(name: &str) -> NamespacedName {
        ("games".to_owned(), name.to_owned())
    }

    fn template(name: &str, version: &str, mib: usize) -> Template {
        Template {
            uid: name.to_owned(),
            version: version.to_owned(),
            spec: Ok(Arc::default()),
            bytes: mib * MIB,
            problem: None,
        }
    }

    impl Templates {
        fn apply(&mut self, name: &str, version: &str, mib: usize) {
            let event = Event::Apply(key(name), template(name, version, mib));
            self.apply_event(event, Duration::ZERO);
        }

        fn delete(&mut self, name: &str, uid: &str) {
            self.apply_event(Event::Delete(key(name), uid.to_owned()), Duration::ZERO);
        }

        /// Lists these templates.
        fn list(&mut self, all: &[(&str, usize)]) -> BTreeSet<NamespacedName> {
            self.apply_event(Event::Init, Duration::ZERO);
            for (name, mib) in all {
                let event = Event::InitApply(key(name), template(name, "9", *mib));
                self.apply_event(event, Duration::ZERO);
            }
            self.apply_event(Event::InitDone, Duration::ZERO)
        }

        fn is_kept(&self, name: &str) -> bool {
            self.get(&key(name)).unwrap().spec.is_ok()
        }

        fn mib(&self) -> usize {
            self.bytes.get("games").map_or(0, |bytes| bytes / MIB)
        }
    }

    #[test]
    fn the_specs_of_a_namespace_together_have_a_limit() {
        let mut templates = Templates::default();
        templates.list(&[("a", 10), ("b", 6), ("c", 1), ("d", 0)]);
        let kept = ["a", "b", "c", "d"].map(|name| templates.is_kept(name));
        assert_eq!((kept, templates.mib()), ([true, true, false, true], 16));
        let refused = templates.get(&key("c")).unwrap();
        let words = UnusableTemplate::TooLarge(TooLarge::Namespace("games".to_owned()));
        assert_eq!((refused.spec.as_ref().unwrap_err(), refused.bytes), (&words, 0));
        // Another namespace has its own.
        let other = ("other".to_owned(), "a".to_owned());
        let event = Event::Apply(other.clone(), template("other", "1", 16));
        templates.apply_event(event, Duration::ZERO);
        assert!(templates.get(&other).unwrap().spec.is_ok());
        assert_eq!(
            templates.names_in("games").collect::<Vec<_>>(),
            ["a", "b", "c", "d"]
        );
        // What took part in a full namespace may change within its own room.
        templates.apply("a", "10", 10);
        assert!(templates.is_kept("a"));
        templates.apply("a", "11", 11);
        assert_eq!((templates.is_kept("a"), templates.mib()), (false, 6));
    }

    #[test]
    fn room_is_free_again_once_a_template_is_smaller_or_gone() {
        let frees: [fn(&mut Templates); 4] = [
            |templates| templates.apply("a", "10", 9),
            |templates| templates.delete("a", "a"),
            |templates| drop(templates.list(&[("b", 6), ("c", 1)])),
            |templates| {
                let (uid, version) = ("a".to_owned(), "10".to_owned());
                let unreadable = Template::new(uid, version, Err("no".to_owned()), None);
                templates.apply_event(Event::Apply(key("a"), unreadable), Duration::ZERO);
            },
        ];
        for (at, free) in frees.into_iter().enumerate() {
            let mut templates = Templates::default();
            templates.list(&[("a", 10), ("b", 6), ("c", 1)]);
            free(&mut templates);
            assert!(!templates.is_kept("c"), "{at}: it was not shown again");
            templates.apply("c", "11", 1);
            assert!(templates.is_kept("c"), "{at}");
        }
    }

    #[test]
    fn only_what_is_stored_counts_and_only_once() {
        let mut templates = Templates::default();
        templates.apply("a", "5", 10);
        // These events are late.
        templates.apply("a", "4", 2);
        templates.delete("a", "of another");
        templates.delete("b", "b");
        assert_eq!(templates.mib(), 10);
        templates.apply("a", "6", 10);
        templates.list(&[("a", 10)]);
        assert_eq!(templates.mib(), 10);
        let gone = templates.list(&[]);
        assert_eq!(gone, BTreeSet::from([key("a")]));
        assert!(templates.bytes.is_empty(), "{:?}", templates.bytes);
    }

    #[test]
    fn a_template_counts_as_changed_when_it_gets_room() {
        let mut templates = Templates::default();
        templates.list(&[("a", 16), ("b", 1)]);
        let shown = |templates: &mut Templates, version: &str| {
            let event = Event::Apply(key("b"), template("b", version, 1));
            templates.apply_event(event, Duration::ZERO)
        };
        assert!(shown(&mut templates, "10").is_empty(), "it has no room as before");
        templates.delete("a", "a");
        assert_eq!(shown(&mut templates, "11"), BTreeSet::from([key("b")]));
        assert!(shown(&mut templates, "12").is_empty());
    }
}
