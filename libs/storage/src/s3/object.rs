//! What S3 keeps about an object, and what this backend keeps with it: its CRC32C and the mark of its write.

use object_store::{Attribute, AttributeValue, Attributes};

use crate::generation::{Checksum, Generation};
use crate::name::ObjectName;
use crate::settle::MARK;

/// The key of the CRC32C, in 8 hex digits, in an object's metadata.
const CRC32C: &str = "penstock-crc32c";

/// What is written beside the content. The checksum is left out where the content is not known yet.
pub(super) fn attributes(name: &ObjectName, mark: &str, checksum: Option<Checksum>) -> Attributes {
    let ends_in = name.as_str().rsplit('.').next();
    let content_type = if ends_in == Some("json") { "application/json" } else { "application/x-ndjson" };
    let mut attributes = Attributes::from_iter([
        (Attribute::ContentType, AttributeValue::from(content_type)),
        (Attribute::Metadata(MARK.into()), AttributeValue::from(mark.to_owned())),
    ]);
    if let Some(checksum) = checksum {
        let crc32c = format!("{:08x}", checksum.crc32c);
        attributes.insert(Attribute::Metadata(CRC32C.into()), crc32c.into());
    }
    attributes
}

/// The CRC32C that the writer of the object has told; `None` also where it is none.
pub(super) fn crc32c(attributes: &Attributes) -> Option<u32> {
    let text = attributes.get(&Attribute::Metadata(CRC32C.into()))?;
    u32::from_str_radix(text, 16).ok()
}

/// The mark of the write that made the object.
pub(super) fn mark(attributes: &Attributes) -> Option<String> {
    attributes.get(&Attribute::Metadata(MARK.into())).map(|mark| mark.as_ref().to_owned())
}

/// The generation that an `ETag` stands for: its text without the quotes, which not every service writes everywhere.
pub(super) fn generation(e_tag: Option<&str>) -> Generation {
    let e_tag = e_tag.unwrap_or_default();
    Generation::new(e_tag.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(e_tag))
}

/// The `ETag` of a generation, as preconditions name it.
pub(super) fn e_tag(generation: &Generation) -> String {
    format!("\"{generation}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_beside_an_object_is_read_again() {
        let name = ObjectName::from_static("state.json");
        let written = attributes(&name, "mark", Some(Checksum { size_bytes: 9, crc32c: 0x06 }));
        assert_eq!(crc32c(&written), Some(0x06));
        assert_eq!(mark(&written).as_deref(), Some("mark"));
        assert_eq!(written.get(&Attribute::ContentType).map(AsRef::as_ref), Some("application/json"));
        assert_eq!(crc32c(&attributes(&name, "mark", None)), None);
    }

    #[test]
    fn quotes_are_no_part_of_a_generation() {
        for told in ["\"0cc1-2\"", "0cc1-2"] {
            assert_eq!(e_tag(&generation(Some(told))), "\"0cc1-2\"");
        }
    }
}
