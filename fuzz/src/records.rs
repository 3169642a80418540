//! What a claim reads of earlier epochs: the heads of their records, in parts and in scratch, and the names of parts.

use penstock_batchfile::{Format, read_record};
use penstock_job::layout::PartName;

use crate::bounded;

/// The first byte says where a record is torn; the rest is the record.
pub fn record_head(data: &[u8]) {
    let Some((torn, line)) = bounded(data, 16 << 10).split_first() else { return };
    for format in [Format::Prompts, Format::OpenAi] {
        let Ok(head) = read_record(line, format) else { continue };
        let text = str::from_utf8(line).expect("a record is text");
        assert!(head.id.is_none_or(|id| text.contains(id)), "the id is copied as it stands");
        let ended = format!("{text}\n");
        assert_eq!(read_record(ended.as_bytes(), format).ok(), Some(head), "its newline changes nothing");
        let record = line.trim_ascii_end();
        let torn = &record[..usize::from(*torn) * record.len() / 256];
        assert!(read_record(torn, format).is_err(), "a torn record is none");
    }
}

/// The name of an object below `parts/`, or of a file in scratch.
pub fn part_name(data: &[u8]) {
    let Ok(text) = str::from_utf8(bounded(data, 256)) else { return };
    let Ok(name) = text.parse::<PartName>() else { return };
    assert!(text == name.to_string() || text == name.file_name(), "{text} is another name of {name}");
}
