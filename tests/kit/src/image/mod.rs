//! Builds container images from bytes: an OCI archive for `ctr images import`, without a registry or builder.
//!
//! Names and images are separate, so that several names can refer to the same image, as with a retag.
//! Identical layers occur once.

mod tar;

use std::fmt::Write as _;
use std::io;

use ring::digest::{SHA256, digest};
use serde_json::{Map, Value, json};

use tar::Tar;

/// Container image.
#[derive(Debug, Clone, Default)]
pub struct Image {
    below: Vec<Tar>,
    layer: Tar,
    command: Vec<String>,
    user: Option<&'static str>,
    labels: Map<String, Value>,
}

impl Image {
    /// Returns an empty image that runs this command as root.
    pub fn new(command: &[&str]) -> Self {
        Self {
            command: command.iter().map(|&word| word.to_owned()).collect(),
            ..Self::default()
        }
    }

    /// Sets the user and group: `UID:GID`.
    #[must_use]
    pub fn user(mut self, user: &'static str) -> Self {
        self.user = Some(user);
        self
    }

    /// Sets a label; the name is one of the OCI annotation keys.
    #[must_use]
    pub fn label(mut self, name: &str, value: &str) -> Self {
        self.labels.insert(name.to_owned(), value.into());
        self
    }

    /// Starts a new layer for all later additions.
    #[must_use]
    pub fn next_layer(mut self) -> Self {
        self.below.push(std::mem::take(&mut self.layer));
        self
    }

    /// Adds a directory. Names have no leading slash; a parent comes before its contents.
    pub fn directory(mut self, name: &str) -> io::Result<Self> {
        self.layer.directory(name)?;
        Ok(self)
    }

    /// Adds a non-executable file.
    pub fn file(mut self, name: &str, content: &[u8]) -> io::Result<Self> {
        self.layer.file(name, 0o644, content)?;
        Ok(self)
    }

    /// Adds an executable file.
    pub fn program(mut self, name: &str, content: &[u8]) -> io::Result<Self> {
        self.layer.file(name, 0o755, content)?;
        Ok(self)
    }

    /// Adds a symbolic link.
    pub fn link(mut self, name: &str, target: &str) -> io::Result<Self> {
        self.layer.link(name, target)?;
        Ok(self)
    }
}

/// Builds one archive with these images under these names.
pub fn archive(images: &[(&str, &Image)]) -> io::Result<Vec<u8>> {
    let mut blobs = Blobs::default();
    let mut listed = Vec::new();
    for (name, image) in images {
        let mut manifest = blobs.manifest(image)?;
        manifest["annotations"] = json!({
            "io.containerd.image.name": name,
            "org.opencontainers.image.ref.name": name,
        });
        listed.push(manifest);
    }
    let mut archive = blobs.archive;
    archive.file("oci-layout", 0o644, br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    let index = json!({ "schemaVersion": 2, "manifests": listed });
    archive.file("index.json", 0o644, index.to_string().as_bytes())?;
    Ok(archive.finish())
}

/// Contents of an archive, by digest.
#[derive(Default)]
struct Blobs {
    archive: Tar,
    written: Vec<String>,
}

impl Blobs {
    fn manifest(&mut self, image: &Image) -> io::Result<Value> {
        let layers = image.below.iter().chain([&image.layer]);
        let layers = layers.map(|layer| self.add("layer.v1.tar", &layer.clone().finish()));
        let layers: Vec<Value> = layers.collect::<io::Result<_>>()?;
        let digests: Vec<&Value> = layers.iter().map(|layer| &layer["digest"]).collect();
        let config = json!({
            "architecture": architecture(),
            "os": "linux",
            "config": {
                "Entrypoint": image.command, "Env": ["PATH=/bin"], "WorkingDir": "/",
                "User": image.user.unwrap_or_default(), "Labels": image.labels,
            },
            "rootfs": { "type": "layers", "diff_ids": digests },
        });
        let config = self.add("config.v1+json", config.to_string().as_bytes())?;
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": media_type("manifest.v1+json"),
            "config": config,
            "layers": layers,
        });
        self.add("manifest.v1+json", manifest.to_string().as_bytes())
    }

    /// Adds content that is missing and returns its descriptor.
    fn add(&mut self, kind: &str, content: &[u8]) -> io::Result<Value> {
        let hash = hexadecimal(digest(&SHA256, content).as_ref());
        if !self.written.contains(&hash) {
            self.archive
                .file(&format!("blobs/sha256/{hash}"), 0o644, content)?;
            self.written.push(hash.clone());
        }
        Ok(
            json!({ "mediaType": media_type(kind), "digest": format!("sha256:{hash}"), "size": content.len() }),
        )
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn media_type(kind: &str) -> String {
    format!("application/vnd.oci.image.{kind}")
}

/// Returns this machine's architecture in OCI terms.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(images: &[(&str, &Image)]) -> String {
        String::from_utf8_lossy(&archive(images).unwrap()).into_owned()
    }

    #[test]
    fn two_names_of_one_image_share_all_content() {
        let image = Image::new(&["/bin/game"]).file("version", b"v1").unwrap();
        let other = image.clone().file("more", b"").unwrap();
        let blobs = |images: &[(&str, &Image)]| text(images).matches("blobs/sha256/").count();
        assert_eq!(blobs(&[("r/game:v1", &image)]), 3);
        assert_eq!(blobs(&[("r/game:v1", &image), ("r/game:same", &image)]), 3);
        assert_eq!(blobs(&[("r/game:v1", &image), ("r/game:v2", &other)]), 6);
    }

    #[test]
    fn two_images_share_the_layer_below() {
        let base = || {
            Image::new(&["/bin/game"])
                .file("base", b"b")
                .unwrap()
                .next_layer()
        };
        let one = base().file("version", b"v1").unwrap();
        let other = base().user("65532:65532").file("version", b"v2").unwrap();
        let both = text(&[("r/one:v1", &one), ("r/other:v1", &other)]);
        // Layer, configuration and manifest of each image, plus the shared layer below.
        assert_eq!(both.matches("blobs/sha256/").count(), 7);
        assert_eq!(both.matches(r#""User":"65532:65532""#).count(), 1);
    }

    #[test]
    fn the_same_content_makes_the_same_archive() {
        let image = || {
            Image::new(&["/bin/game"])
                .directory("etc")
                .unwrap()
                .file("etc/x", b"1")
                .unwrap()
        };
        assert_eq!(text(&[("r/g:v1", &image())]), text(&[("r/g:v1", &image())]));
        assert!(text(&[("r/g:v1", &image())]).contains(r#""io.containerd.image.name":"r/g:v1""#));
    }
}
