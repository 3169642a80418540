//! Images: built here by buildah from nothing, kept as archives, and given to each node. There is no registry.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    command::{CommandError, Program},
    files::{self, FileError},
    layout::{Layout, repository},
};

/// The image of the first container of every pod.
pub const PAUSE: &str = "localhost/penstock-pause:e2e";

/// The image of Penstock.
pub const PENSTOCK: &str = "localhost/penstock:e2e";

/// The programs in it, each of a package of this repository that is called like it.
const PROGRAMS: [&str; 3] = ["penstock", "penstock-operator", "penstock-executor"];

/// What Debian puts the certificate authorities of the web into.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// A build from nothing on two cores that do other work as well.
const COMPILE: Duration = Duration::from_hours(1);

/// An image that cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A program says why.
    #[error(transparent)]
    Program(#[from] CommandError),
    /// What goes into it.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Builds the images; their archives.
pub async fn build(layout: &Layout) -> Result<Vec<PathBuf>, ImageError> {
    Ok(vec![pause(layout).await?, penstock(layout).await?])
}

async fn pause(layout: &Layout) -> Result<PathBuf, ImageError> {
    let sources = repository().join("e2e/images/pause");
    let context = layout.image("pause");
    files::copy(&sources.join("Dockerfile"), &context.join("Dockerfile"))?;
    let link = Program::new("cc").arguments(["-static", "-Os", "-Wall", "-o"]);
    link.arguments([context.join("pause"), sources.join("pause.c")]).run().await?;
    pack(layout, &context, PAUSE, "pause.tar").await
}

/// The image that is shipped, of binaries without optimisation: they are compiled in half the time.
async fn penstock(layout: &Layout) -> Result<PathBuf, ImageError> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let folder = repository().join("target");
    eprintln!("building the image of penstock: the first time takes minutes");
    Program::new("cargo")
        .arguments(["build", "--quiet", "--locked", "--bins", "--target", &target, "--target-dir"])
        .argument(&folder)
        .arguments(PROGRAMS.iter().flat_map(|program| ["--package", program]))
        // A target that is named keeps these flags from what runs at build time, which cannot be static.
        .variable("RUSTFLAGS", "-C target-feature=+crt-static")
        .inside(repository())
        .within(COMPILE)
        .watched()
        .await?;
    let context = layout.image("penstock");
    files::copy(&repository().join("Dockerfile"), &context.join("Dockerfile"))?;
    files::copy(Path::new(AUTHORITIES), &context.join("ca-certificates.crt"))?;
    let built = folder.join(target).join("debug");
    for program in PROGRAMS {
        let strip = Program::new("strip").arguments(["--strip-all", "-o"]);
        strip.arguments([context.join(program), built.join(program)]).run().await?;
    }
    pack(layout, &context, PENSTOCK, "penstock.tar").await
}

/// Builds the image of a folder with a Dockerfile, and keeps it as an archive.
async fn pack(layout: &Layout, context: &Path, name: &str, archive: &str) -> Result<PathBuf, ImageError> {
    buildah(layout)
        .arguments(["build", "--isolation", "chroot", "--tag", name])
        .argument(context)
        .run()
        .await?;
    let archive = layout.image(archive);
    files::remove(&archive)?;
    let target = format!("oci-archive:{}:{name}", archive.display());
    buildah(layout).arguments(["push", "--disable-compression", name, &target]).run().await?;
    Ok(archive)
}

/// With a store of our own, copying files instead of mounting them: that works inside a container too.
fn buildah(layout: &Layout) -> Program {
    Program::new("buildah")
        .arguments(["--storage-driver", "vfs", "--root"])
        .argument(layout.image("store"))
        .argument("--runroot")
        .argument(layout.image("run"))
        .within(Duration::from_mins(10))
}
