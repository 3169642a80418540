//! Laws of objects that take several requests, or many blocks.

use std::io::Write;

use bytes::Bytes;
use tempfile::NamedTempFile;

use super::{create, name};
use crate::generation::Checksum;
use crate::store::Store;

/// More than object stores take or give in one piece: 16 MiB is where an upload to a bucket becomes resumable.
const SIZE: usize = (17 << 20) + 12_345;

/// A large object is what was written, by one call and from a file, in any range.
pub async fn large_objects_are_whole(store: &dyn Store) {
    let bytes = patterned(SIZE);
    let checksum = Checksum::of(&bytes);
    let mut source = NamedTempFile::new().expect("a source file can be made");
    source.write_all(&bytes).expect("a source file can be written");
    let (created, uploaded) = (name("size/created"), name("size/uploaded"));
    let (by_call, from_file) = tokio::join!(create(store, &created, bytes.clone()), async {
        store.upload(&uploaded, source.path(), checksum).await.expect("the file is uploaded")
    });
    for written in [by_call, from_file] {
        let at = &written.name;
        assert_eq!(written.checksum(), Some(checksum), "{at}");
        let (found, read) = store.get(at, SIZE as u64).await.expect("it is read").expect("it is there");
        assert_eq!(found, written);
        assert!(read == bytes, "{at} holds other bytes");
        let middle = 8 << 20;
        for range in [0..SIZE, 1..SIZE, middle - 1..middle + 1, middle..SIZE, SIZE - 1..SIZE] {
            let read = store.read_range(at, &written.generation, range.start as u64..range.end as u64).await;
            assert!(
                read.expect("the range is read") == bytes[range.clone()],
                "{at}: {range:?} gave other bytes"
            );
        }
    }
}

/// Bytes of which no two megabytes are alike.
fn patterned(size: usize) -> Bytes {
    (0..size as u64).map(|index| (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}
