//! `cargo xtask image`: the operators and the sidecar as container images, in one OCI archive, built without a
//! container engine.
//!
//! The image of the sidecar contains its program alone. Each other image contains the program, its shared libraries,
//! and the certificates of public authorities, but no shell and no package manager. All run as an unprivileged user.
//! The same programs yield the same archive.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use test_kit::assets::{self, Profile};
use test_kit::image::{Image, archive};

/// Images of the programs that run once in a cluster, by name.
const IMAGES: [(&str, &str); 3] = [
    ("hook-operator", "hook-operator"),
    ("gamedeployment-operator", "gamedeployment-operator"),
    ("admission", "hookgate-admission"),
];
/// Image of the program that runs in each pod of a game.
const SIDECAR: (&str, &str) = ("sidecar", "hookgate-sidecar");
/// Maximum size of the sidecar's image, in bytes: every node pulls it.
const MAX_SIDECAR_BYTES: usize = 5_000_000;
/// Registry, as in the chart's values.
pub(crate) const REGISTRY: &str = "ghcr.io/hookgate";
/// Version, as in the chart.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// User of the programs, as in the chart and in Google's distroless images.
const USER: &str = "65532:65532";

/// Flags of `image`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Path of the file to write
    #[arg(long, value_name = "FILE", default_value = "target/images.tar")]
    output: PathBuf,
    /// Registry and path of the image names
    #[arg(long, default_value = REGISTRY)]
    registry: String,
    /// Tag of the images [default: the version]
    #[arg(long, default_value = VERSION, hide_default_value = true)]
    tag: String,
    /// Use debug builds: faster to build, but large and slow
    #[arg(long)]
    debug: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> ExitCode {
    let profile = if args.debug {
        Profile::Debug
    } else {
        Profile::Release
    };
    let written = write(&args.output, &args.registry, &args.tag, profile);
    match written {
        Ok(names) => {
            println!("wrote {}:", args.output.display());
            for name in names {
                println!("  {name}");
            }
            println!(
                "load them with `ctr --namespace k8s.io images import FILE`, `podman load --input FILE`, `docker load \
                 --input FILE`\n(Docker 25 or newer) or `kind load image-archive FILE`, or copy them with `skopeo copy \
                 oci-archive:FILE:NAME docker://NAME`"
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("image: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Writes the archive, and returns the names of the images.
pub(crate) fn write(
    output: &Path,
    registry: &str,
    tag: &str,
    profile: Profile,
) -> Result<Vec<String>, Box<dyn Error>> {
    let mut images = Vec::new();
    for (name, program) in IMAGES {
        let path = assets::built(program, profile)?;
        let path = if profile == Profile::Debug {
            stripped(&path)?
        } else {
            path
        };
        images.push((format!("{registry}/{name}:{tag}"), image(name, program, &path)?));
    }
    images.push((format!("{registry}/{}:{tag}", SIDECAR.0), sidecar()?));
    write_archive(output, images)
}

/// Writes an archive with the sidecar's image alone, and returns the name of the image.
pub(crate) fn write_sidecar(output: &Path) -> Result<String, Box<dyn Error>> {
    let name = format!("{REGISTRY}/{}:{VERSION}", SIDECAR.0);
    write_archive(output, vec![(name.clone(), sidecar()?)])?;
    Ok(name)
}

fn write_archive(output: &Path, images: Vec<(String, Image)>) -> Result<Vec<String>, Box<dyn Error>> {
    let named: Vec<(&str, &Image)> = images
        .iter()
        .map(|(name, image)| (name.as_str(), image))
        .collect();
    if let Some(directory) = output.parent() {
        fs::create_dir_all(directory)?;
    }
    let write = fs::write(output, archive(&named)?);
    write.map_err(|error| format!("failed to write {}: {error}", output.display()))?;
    Ok(images.into_iter().map(|(name, _)| name).collect())
}

/// Builds the sidecar's image.
fn sidecar() -> Result<Image, Box<dyn Error>> {
    let (name, program) = SIDECAR;
    let path = assets::sidecar()?;
    let found = libraries(&path)?;
    if !found.is_empty() {
        return Err(format!(
            "{} needs {found:?}, which its image does not contain",
            path.display()
        )
        .into());
    }
    let content = fs::read(path)?;
    let image = bare(name, program)?.program(&format!("bin/{program}"), &content)?;
    let bytes = archive(&[(name, &image)])?.len();
    if bytes > MAX_SIDECAR_BYTES {
        return Err(
            format!("the image {name} has {bytes} bytes; at most {MAX_SIDECAR_BYTES} are allowed").into(),
        );
    }
    Ok(image)
}

/// Returns an image with labels and an entry point, but without files.
fn bare(name: &str, program: &str) -> Result<Image, Box<dyn Error>> {
    let image = Image::new(&[&format!("/bin/{program}")])
        .user(USER)
        .label("org.opencontainers.image.title", name)
        .label("org.opencontainers.image.version", VERSION)
        .label("org.opencontainers.image.licenses", "Apache-2.0")
        .label(
            "org.opencontainers.image.source",
            "https://github.com/hookgate/hookgate",
        );
    Ok(image.directory("bin")?)
}

fn image(name: &str, program: &str, path: &Path) -> Result<Image, Box<dyn Error>> {
    let mut image = bare(name, program)?
        .directory("etc")?
        .file("etc/passwd", b"nonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")?
        .file("etc/group", b"nonroot:x:65532:\n")?
        .file("etc/nsswitch.conf", b"hosts: files dns\n")?
        .directory("etc/ssl")?
        .directory("etc/ssl/certs")?
        .file(
            "etc/ssl/certs/ca-certificates.crt",
            &fs::read(assets::ca_certificates()?)?,
        )?;
    let mut directories = Vec::new();
    for library in libraries(path)? {
        for directory in parents(&library) {
            if !directories.contains(&directory) {
                image = image.directory(&directory)?;
                directories.push(directory);
            }
        }
        // Follows links: the program loads the library by this name.
        image = image.program(library.trim_start_matches('/'), &fs::read(&library)?)?;
    }
    Ok(image
        .next_layer()
        .program(&format!("bin/{program}"), &fs::read(path)?)?)
}

/// Returns the shared libraries of a program, including its loader, by the paths at which it finds them.
fn libraries(program: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let output = Command::new("ldd").arg(program).output()?;
    let text = String::from_utf8(output.stdout)?;
    if text.contains("statically linked") {
        return Ok(Vec::new());
    }
    let mut libraries = Vec::new();
    for line in text
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("linux-vdso"))
    {
        // NAME => PATH (ADDRESS), or PATH (ADDRESS) for the loader.
        let path = line.split_once(" => ").map_or(line, |(_, path)| path);
        let path = path.split(' ').next().unwrap_or_default();
        if !path.starts_with('/') {
            return Err(format!("ldd does not say where {} finds {line:?}", program.display()).into());
        }
        libraries.push(path.to_owned());
    }
    if libraries.is_empty() {
        return Err(format!("ldd says nothing of {}", program.display()).into());
    }
    libraries.sort();
    Ok(libraries)
}

/// Returns the parent directories of a file as archive entries, the topmost first.
fn parents(path: &str) -> Vec<String> {
    let ancestors = Path::new(path.trim_start_matches('/')).ancestors().skip(1);
    let mut names: Vec<String> = ancestors
        .map(|directory| directory.display().to_string())
        .filter(|name| !name.is_empty())
        .collect();
    names.reverse();
    names
}

/// Returns a copy without debug information.
fn stripped(program: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let copy = program.with_extension("stripped");
    let status = Command::new("strip").arg("-o").arg(&copy).arg(program).status()?;
    if status.success() {
        Ok(copy)
    } else {
        Err(format!("strip {}: {status}", program.display()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_linked_to_its_loader_and_the_c_library() {
        let found = libraries(&std::env::current_exe().unwrap()).unwrap();
        assert!(found.iter().any(|path| path.contains("/ld-linux")), "{found:?}");
        assert!(found.iter().any(|path| path.ends_with("/libc.so.6")), "{found:?}");
        assert!(found.iter().all(|path| Path::new(path).is_file()), "{found:?}");
    }

    #[test]
    fn the_topmost_directory_comes_first() {
        assert_eq!(
            parents("/lib/x86_64-linux-gnu/libc.so.6"),
            ["lib", "lib/x86_64-linux-gnu"]
        );
    }
}
