//! Images to run: a static busybox and shell scripts, without pulling or compiling.

use std::fs;
use std::path::Path;

use super::error::{Error, io_error};
use crate::image::Image;

/// Process that holds a pod's namespaces.
pub(super) const PAUSE: &str = "hookgate.test/pause:1";
/// Game server, version `v1`.
pub const GAME_V1: &str = "hookgate.test/game:v1";
/// Second name of the same image as [`GAME_V1`].
pub const GAME_V1_RETAGGED: &str = "hookgate.test/game:v1-retagged";
/// Game server, version `v2`.
pub const GAME_V2: &str = "hookgate.test/game:v2";
/// Name without an image.
pub const GAME_MISSING: &str = "hookgate.test/game:missing";
/// Default port of the game server's `/status.json`; the variable `PORT` overrides it. The document holds its
/// version, the number of players (variable `PLAYERS`) and its phase, `serving` or `draining`. On SIGTERM it
/// drains for `DRAIN_SECONDS`.
pub const GAME_PORT: u16 = 9091;

/// Returns all images with their names.
pub(super) fn all(programs: &Path) -> Result<Vec<(&'static str, Image)>, Error> {
    let busybox = fs::read(programs.join("busybox")).map_err(io_error("read busybox"))?;
    let images = || {
        let v1 = game(&busybox, "v1")?;
        Ok::<_, std::io::Error>(vec![
            (PAUSE, pause(&busybox)?),
            (GAME_V1, v1.clone()),
            (GAME_V1_RETAGGED, v1),
            (GAME_V2, game(&busybox, "v2")?),
        ])
    };
    images().map_err(io_error("make container images"))
}

fn with_busybox(image: Image, busybox: &[u8]) -> std::io::Result<Image> {
    let mut image = image.directory("bin")?.program("bin/busybox", busybox)?;
    for applet in ["cat", "kill", "mkdir", "mv", "sh", "sleep"] {
        image = image.link(&format!("bin/{applet}"), "busybox")?;
    }
    Ok(image)
}

fn pause(busybox: &[u8]) -> std::io::Result<Image> {
    with_busybox(Image::new(&["/bin/pause"]), busybox)?
        .program("bin/pause", include_bytes!("../../assets/pause.sh"))
}

fn game(busybox: &[u8], version: &str) -> std::io::Result<Image> {
    with_busybox(Image::new(&["/bin/game-server"]), busybox)?
        .program("bin/game-server", include_bytes!("../../assets/game-server.sh"))?
        .directory("etc")?
        .file("etc/httpd.conf", b".json:application/json\n")?
        .directory("state")?
        .file("version", version.as_bytes())
}
