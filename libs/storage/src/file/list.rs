//! The names of a folder store in lexicographic order.
//!
//! A folder sorts as its name followed by `/`, which is where the names below it belong among the others.

use std::fs;
use std::io;
use std::path::Path;

use super::folder::Folder;
use crate::Result;
use crate::error::{Action, StorageError};
use crate::name::{ObjectName, RESERVED};

/// Objects a page.
pub(super) const LIST_PAGE: usize = 1_000;

/// At most `limit` names that start with `prefix` and come after `start_after`.
pub(super) fn names(
    folder: &Folder,
    prefix: &str,
    start_after: Option<&str>,
    limit: usize,
) -> Result<Vec<ObjectName>> {
    let mut walk = Walk { prefix, start_after: start_after.unwrap_or_default(), limit, names: Vec::new() };
    walk.enter(folder.root(), "")
        .map_err(|answer| StorageError::io(Action::List, folder.root().display(), &answer))?;
    Ok(walk.names)
}

struct Walk<'a> {
    prefix: &'a str,
    start_after: &'a str,
    limit: usize,
    names: Vec<ObjectName>,
}

impl Walk<'_> {
    /// Takes the names below `path`, all of which start with `above`.
    fn enter(&mut self, path: &Path, above: &str) -> io::Result<()> {
        for key in self.keys(path, above)? {
            if self.names.len() == self.limit {
                break;
            }
            if let Some(segment) = key.strip_suffix('/') {
                self.enter(&path.join(&segment[above.len()..]), &key)?;
            } else if let Ok(name) = ObjectName::parse(key) {
                self.names.push(name);
            }
        }
        Ok(())
    }

    /// The entries of one folder that matter here, in order: names of files, and of folders with `/` at the end.
    fn keys(&self, path: &Path, above: &str) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            // Deleted with its last object since it was seen, or never made.
            Err(answer) if answer.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(answer) => return Err(answer),
        };
        let mut keys = Vec::new();
        for entry in entries {
            let entry = entry?;
            // Nobody but the store writes here, and it writes no such name.
            let Ok(segment) = entry.file_name().into_string() else {
                continue;
            };
            if above.is_empty() && segment == RESERVED {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                let key = format!("{above}{segment}/");
                if self.may_hold(&key) {
                    keys.push(key);
                }
            } else if kind.is_file() {
                let key = format!("{above}{segment}");
                if key.starts_with(self.prefix) && *key > *self.start_after {
                    keys.push(key);
                }
            }
        }
        keys.sort_unstable();
        Ok(keys)
    }

    /// Whether some name below the folder `key` can start with the prefix and come after `start_after`.
    fn may_hold(&self, key: &str) -> bool {
        let matches = key.starts_with(self.prefix) || self.prefix.starts_with(key);
        matches && (key > self.start_after || self.start_after.starts_with(key))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn pages_of_any_size_joined_are_the_sorted_names(
            segments in prop::collection::btree_set("[a-c](/[a-c.-]{0,2}d){0,2}", 1..12),
            prefix in "[a-c]?/?",
            limit in 1_usize..5,
        ) {
            let root = tempfile::tempdir().unwrap();
            let mut expected = Vec::new();
            for name in segments {
                let path = root.path().join(&name);
                // A name below one that is a file already, or the reverse, has no place in a folder.
                if fs::create_dir_all(path.parent().unwrap()).is_ok() && fs::write(&path, "").is_ok() {
                    expected.push(name);
                }
            }
            expected.retain(|name| name.starts_with(&prefix));
            expected.sort_unstable();

            let folder = Folder::open(root.path()).unwrap();
            let mut found: Vec<String> = Vec::new();
            loop {
                let page = names(&folder, &prefix, found.last().map(String::as_str), limit).unwrap();
                prop_assert!(page.len() <= limit);
                if page.is_empty() {
                    break;
                }
                found.extend(page.iter().map(ToString::to_string));
            }
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_prefix_cannot_lead_out_of_the_folder_or_into_the_stores_own() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("out/.penstock")).unwrap();
        fs::write(root.path().join("out/.penstock/lock"), "").unwrap();
        fs::write(root.path().join("secret"), "").unwrap();
        let folder = Folder::open(&root.path().join("out")).unwrap();
        for prefix in ["", "../", "..", "/", ".penstock/", "."] {
            assert_eq!(names(&folder, prefix, None, 9).unwrap(), [], "{prefix:?}");
        }
    }
}
