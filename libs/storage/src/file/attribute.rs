//! The record of an uploaded file, kept as an extended attribute of that file: no second file to write, to force to
//! disk and to remove, and file and record cannot be parted by a crash.
//!
//! It is set before the file has the name of an object, by the sync that the file needs anyway, and never again. Where
//! the file system has no such attributes, or the file has one that says something else, because it was uploaded before,
//! [a record file](super::record) takes its place. A copy of the folder that leaves attributes behind leaves objects
//! without a record, which are settled when they are next looked at.

use std::fs::{File, Metadata};
use std::io;
use std::str;

use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};
use rustix::io::Errno;
use tracing::debug;

use super::record::Record;
use crate::generation::Checksum;
use crate::version::FileVersion;

/// The attribute's name.
const NAME: &str = "user.penstock";

/// How the system says that a file does not have the attribute.
#[cfg(not(target_vendor = "apple"))]
const ABSENT: Errno = Errno::NODATA;
#[cfg(target_vendor = "apple")]
const ABSENT: Errno = Errno::NOATTR;

/// More than the longest text: four numbers of at most 20, 8, 20 and 40 characters.
const LONGEST_BYTES: usize = 128;

/// Sets the record of `file`, unless it has one or cannot have one. Durable with the next sync of the file.
pub(super) fn set(file: &File, record: &Record) {
    if let Err(error) = fsetxattr(file, NAME, text(record).as_bytes(), XattrFlags::CREATE) {
        debug!(%error, "an uploaded file cannot have its record as an attribute; it gets a record file");
    }
}

/// The record that `file` with `metadata` has, whether or not it still describes it.
pub(super) fn get(file: &File, metadata: &Metadata) -> io::Result<Option<Record>> {
    let mut buffer = [0; LONGEST_BYTES];
    match fgetxattr(file, NAME, &mut buffer) {
        Ok(length) => Ok(parse(&buffer[..length], metadata)),
        // The last: it is longer than any that is written here.
        Err(ABSENT | Errno::NOTSUP | Errno::RANGE) => Ok(None),
        Err(answer) => Err(answer.into()),
    }
}

/// Generation, checksum, size and modification time. Short, because a file system keeps a few dozen bytes beside the
/// file's other properties and takes a block for more. The inode needs no mention: the attribute is part of it.
fn text(record: &Record) -> String {
    let Checksum { size_bytes, crc32c } = record.checksum();
    format!("{} {crc32c:08x} {size_bytes} {}", record.generation, record.file.modified_ns)
}

fn parse(text: &[u8], metadata: &Metadata) -> Option<Record> {
    let mut words = str::from_utf8(text).ok()?.split(' ');
    let mut word = || words.next();
    let record = Record {
        generation: word()?.parse().ok()?,
        crc32c: u32::from_str_radix(word()?, 16).ok()?,
        file: FileVersion {
            size_bytes: word()?.parse().ok()?,
            modified_ns: word()?.parse().ok()?,
            ..FileVersion::from(metadata)
        },
    };
    words.next().is_none().then_some(record)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tempfile::NamedTempFile;

    use super::*;

    /// A file, and a record of what it holds.
    fn written(content: &[u8]) -> (NamedTempFile, Record) {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(content).unwrap();
        let record = Record::new(7, 0x00c0_ffee, &metadata(&file));
        (file, record)
    }

    fn metadata(file: &NamedTempFile) -> Metadata {
        file.as_file().metadata().unwrap()
    }

    #[test]
    fn the_first_record_of_a_file_stays() {
        let (file, record) = written(b"content");
        assert_eq!(get(file.as_file(), &metadata(&file)).unwrap(), None);
        set(file.as_file(), &record);
        set(file.as_file(), &Record { generation: 8, ..record.clone() });
        assert_eq!(get(file.as_file(), &metadata(&file)).unwrap(), Some(record));
    }

    #[test]
    fn a_record_does_not_describe_what_was_written_after_it() {
        let (mut file, record) = written(b"content");
        set(file.as_file(), &record);
        file.write_all(b", and more").unwrap();
        let record = get(file.as_file(), &metadata(&file)).unwrap().unwrap();
        assert!(!record.describes(&metadata(&file)));
    }

    #[test]
    fn what_the_store_has_not_written_is_no_record() {
        let (file, _) = written(b"");
        for text in ["", "7", "7 00c0ffee 7", "7 x 7 9", "7 00c0ffee 7 9 1", "-7 00c0ffee 7 9", "\u{fe}"] {
            assert_eq!(parse(text.as_bytes(), &metadata(&file)), None, "{text:?}");
        }
    }
}
