//! The scratch folder of a job: what stands in it when a run begins, and its end. Each file of an earlier incarnation is the
//! beginning of a part: answers that were received, and are perhaps not durable yet.
//!
//! To take them over is safe because it is only one more way to receive an answer: each line has one slot, whoever fills
//! it (R3 of the job protocol).

use std::{
    env,
    ffi::OsString,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use penstock_batchfile::{Ordinal, OutcomeKind};
use penstock_job::{Epoch, Identity, identity::hex, layout::PartName};
use penstock_storage::Location;
use sha2::{Digest, Sha256};

use crate::{
    error::RunError,
    records::{RecordForm, RecordReader},
};

/// Bytes read at once.
const CHUNK: usize = 256 << 10;

/// The scratch folder of a job on this machine. In a folder's output it is on the same file system, so that finished parts
/// need no copy. Of a bucket it is below the user's [state folder](state_folder), where another output of the same job has
/// its own; `None` where there is no such folder.
pub fn scratch_folder(output: &Location, identity: &Identity) -> Option<PathBuf> {
    match output {
        Location::Path(folder) => Some(folder.join(".penstock/scratch").join(identity.prefix(16))),
        Location::Bucket(place) => {
            let output = hex(&Sha256::digest(place.to_string()));
            Some(state_folder()?.join(format!("{identity}-{}", &output[..16])))
        }
    }
}

/// `$XDG_STATE_HOME/penstock`, else `~/.local/state/penstock`
/// (<https://specifications.freedesktop.org/basedir-spec/latest/>); `None` for a user without a home.
pub fn state_folder() -> Option<PathBuf> {
    state_folder_of(|name| env::var_os(name))
}

fn state_folder_of(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("penstock"))
}

/// Makes the folder, unless it is there.
pub(crate) async fn create(folder: &Path) -> Result<(), RunError> {
    tokio::fs::create_dir_all(folder).await.map_err(|source| error(folder, source))
}

/// The scratch folder of a finished job holds nothing that anybody needs.
pub(crate) async fn remove(folder: &Path) {
    if let Err(error) = tokio::fs::remove_dir_all(folder).await
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(folder = %folder.display(), %error, "the scratch folder is left behind");
    }
}

/// A run cannot go on without its folder.
pub(crate) fn error(folder: &Path, source: io::Error) -> RunError {
    RunError::Scratch { folder: folder.display().to_string(), source }
}

/// Shows every whole record in the files of epochs before `own`, oldest first; a torn last record is ignored. Returns
/// the files, to be deleted once their records are stored anew. Blocks.
pub(crate) fn read_left_behind(
    folder: &Path,
    own: Epoch,
    form: RecordForm,
    mut visit: impl FnMut(Ordinal, OutcomeKind, &[u8]),
) -> io::Result<Vec<PathBuf>> {
    let mut files: Vec<(PartName, PathBuf)> = fs::read_dir(folder)?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter_map(|path| Some((path.file_name()?.to_str()?.parse().ok()?, path)))
        .filter(|(name, _): &(PartName, PathBuf)| name.epoch < own)
        .collect();
    files.sort_unstable();
    for (_, path) in &files {
        read(path, form, &mut visit)?;
    }
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

/// The highest epoch that has left a file in the scratch folder.
pub(crate) async fn highest_epoch(folder: &Path) -> Epoch {
    let mut highest = Epoch::NONE;
    // A folder that is not there yet holds nothing; one that cannot be read is told of before anything is sent.
    let Ok(mut entries) = tokio::fs::read_dir(folder).await else {
        return highest;
    };
    while let Ok(Some(entry)) = entries.next_entry().await {
        if let Some(part) = entry.file_name().to_str().and_then(|name| name.parse::<PartName>().ok()) {
            highest = highest.max(part.epoch);
        }
    }
    highest
}

fn read(
    path: &Path,
    form: RecordForm,
    visit: &mut impl FnMut(Ordinal, OutcomeKind, &[u8]),
) -> io::Result<()> {
    let mut file = match fs::File::open(path) {
        // Its owner may still be alive and have published it since the folder was listed.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let mut reader = RecordReader::new(form);
    let mut chunk = vec![0; CHUNK];
    loop {
        let length = file.read(&mut chunk)?;
        let fed = reader.feed(&chunk[..length], |record, head| {
            visit(head.ordinal, head.outcome, record);
            Ok(())
        });
        if let Err(problem) = fed {
            tracing::warn!(file = %path.display(), problem, "the rest of a file in scratch is ignored");
            return Ok(());
        }
        if length == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_folder_is_the_users() {
        let folder = |state: Option<&str>, home: Option<&str>| {
            let folder = state_folder_of(|name| match name {
                "XDG_STATE_HOME" => state.map(Into::into),
                "HOME" => home.map(Into::into),
                _ => None,
            });
            folder.map(|folder| folder.display().to_string())
        };
        assert_eq!(folder(Some("/state"), Some("/home/a")).as_deref(), Some("/state/penstock"));
        for relative in [None, Some(""), Some("state")] {
            assert_eq!(folder(relative, Some("/home/a")).as_deref(), Some("/home/a/.local/state/penstock"));
        }
        assert_eq!(folder(None, None), None);
    }
}
