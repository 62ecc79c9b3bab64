//! Image names as container runtimes parse them: `nginx` is `docker.io/library/nginx:latest`.
//!
//! This module pulls nothing and contacts no registry: two names of one image that differ by a mirror remain
//! two names.

/// A parsed image name. [`ImageName::read`] accepts any text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageName<'a> {
    /// Registry with its port; `docker.io` if omitted.
    pub registry: &'a str,
    /// Repository without the registry and without `library/`.
    pub repository: &'a str,
    /// Tag; `latest` if there is neither a tag nor a digest.
    pub tag: Option<&'a str>,
    /// Digest with its algorithm: `sha256:…`.
    pub digest: Option<&'a str>,
}

const DOCKER_HUB: &str = "docker.io";

impl<'a> ImageName<'a> {
    /// Parses a name.
    pub fn read(text: &'a str) -> Self {
        let text = without_scheme(text.trim());
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (text, None),
        };
        // A colon before the last slash belongs to the registry's port.
        let (name, tag) = match name.rsplit_once(':') {
            Some((before, tag)) if !tag.contains('/') => (before, Some(tag)),
            _ => (name, None),
        };
        let (registry, repository) = match name.split_once('/') {
            Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => (first, rest),
            _ => (DOCKER_HUB, name),
        };
        let registry = match registry {
            "index.docker.io" | "registry-1.docker.io" => DOCKER_HUB,
            other => other,
        };
        let repository = match repository.strip_prefix("library/") {
            Some(rest) if registry == DOCKER_HUB => rest,
            _ => repository,
        };
        let tag = tag.or_else(|| digest.is_none().then_some("latest"));
        Self {
            registry,
            repository,
            tag,
            digest,
        }
    }

    /// Whether both names refer to the same image: the same digest or, unless both have one, the same tag of
    /// the same repository.
    pub fn same_as(&self, other: &ImageName<'_>) -> bool {
        match (self.digest, other.digest) {
            (Some(one), Some(two)) => one == two,
            _ => {
                self.tag.is_some()
                    && self.tag == other.tag
                    && self.registry == other.registry
                    && self.repository == other.repository
            }
        }
    }
}

/// Extracts the digest from an imageID of a container's status: `docker-pullable://nginx@sha256:…`, or a bare
/// `sha256:…`.
pub fn digest_of_id(image_id: &str) -> Option<&str> {
    let id = without_scheme(image_id.trim());
    match id.split_once('@') {
        Some((_, digest)) => Some(digest),
        None => id.starts_with("sha256:").then_some(id),
    }
}

/// Returns the pull policy that the API server sets for an image without one: `Always` for `latest`,
/// otherwise `IfNotPresent`.
pub fn default_pull_policy(image: &str) -> &'static str {
    // An empty name is invalid and has no tag that could move.
    if image.trim().is_empty() {
        return "IfNotPresent";
    }
    match ImageName::read(image).tag {
        Some("latest") => "Always",
        _ => "IfNotPresent",
    }
}

/// Removes the scheme that Docker puts before its ids: `docker-pullable://` or `docker://`.
fn without_scheme(text: &str) -> &str {
    text.split_once("://").map_or(text, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_runtimes_read_them() {
        let table = "
            nginx docker.io nginx latest -
            library/nginx docker.io nginx latest -
            docker.io/library/nginx:1.27 docker.io nginx 1.27 -
            index.docker.io/team/game docker.io team/game latest -
            reg.example:5000/team/game reg.example:5000 team/game latest -
            reg.example:5000/game:v1 reg.example:5000 game v1 -
            localhost/game:v1 localhost game v1 -
            reg.example/library/game:v1 reg.example library/game v1 -
            game@sha256:aa docker.io game - sha256:aa
            game:v1@sha256:aa docker.io game v1 sha256:aa
            docker-pullable://r.io/game@sha256:aa r.io game - sha256:aa
        ";
        for row in table.trim().lines() {
            let columns: Vec<&str> = row.split_whitespace().collect();
            let [text, registry, repository, tag, digest] = <[&str; 5]>::try_from(columns).expect(row);
            let given = |column: &'static str| (column != "-").then_some(column);
            let expected = ImageName {
                registry,
                repository,
                tag: given(tag),
                digest: given(digest),
            };
            assert_eq!(ImageName::read(text), expected, "{text}");
        }
    }

    #[test]
    fn names_that_ask_for_the_same_are_the_same() {
        for (one, two, same) in [
            ("nginx", "docker.io/library/nginx:latest", true),
            ("nginx:1", "docker.io/library/nginx:1", true),
            ("nginx:1", "nginx:2", false),
            ("r.io:5000/game:v1", "r.io/game:v1", false),
            ("mirror.io/nginx:1", "nginx:1", false),
            ("game@sha256:aa", "mirror.io/game@sha256:aa", true),
            ("game:v1@sha256:aa", "game:v1@sha256:bb", false),
            ("game:v1", "game:v1@sha256:aa", true),
            ("game", "game@sha256:aa", false),
            ("game@sha256:aa", "other@sha256:bb", false),
        ] {
            let (one, two) = (ImageName::read(one), ImageName::read(two));
            assert_eq!(one.same_as(&two), same, "{one:?} {two:?}");
            assert_eq!(two.same_as(&one), same, "{two:?} {one:?}");
        }
    }

    #[test]
    fn only_latest_is_pulled_always() {
        for (image, policy) in [
            ("game", "Always"),
            ("game:latest", "Always"),
            ("reg.example:5000/game", "Always"),
            ("game:latest@sha256:aa", "Always"),
            ("game:v1", "IfNotPresent"),
            ("game@sha256:aa", "IfNotPresent"),
            ("", "IfNotPresent"),
        ] {
            assert_eq!(default_pull_policy(image), policy, "{image}");
        }
    }

    #[test]
    fn an_id_shows_its_digest() {
        for (id, digest) in [
            ("docker-pullable://nginx@sha256:aa", Some("sha256:aa")),
            ("docker.io/library/nginx@sha256:aa", Some("sha256:aa")),
            ("sha256:aa", Some("sha256:aa")),
            ("docker://sha256:aa", Some("sha256:aa")),
            ("nginx", None),
            ("", None),
        ] {
            assert_eq!(digest_of_id(id), digest, "{id}");
        }
    }
}
