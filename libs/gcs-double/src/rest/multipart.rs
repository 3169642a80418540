//! Bodies of several parts: the metadata of an object, its content, and checksums that were known only then.

use bytes::Bytes;
use http::HeaderMap;
use memchr::memmem;

use crate::bucket::Refusal;

/// One part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) content_type: Option<String>,
    pub(super) body: Bytes,
}

/// The boundary between the parts, from the headers of the request.
pub(super) fn boundary(headers: &HeaderMap) -> Result<String, Refusal> {
    let content_type = headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let (media_type, parameters) = content_type.and_then(|value| value.split_once(';')).unwrap_or_default();
    let boundary = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("boundary").then(|| value.trim().trim_matches('"'))
    });
    match boundary {
        Some(boundary) if media_type.trim() == "multipart/related" && !boundary.is_empty() => {
            Ok(boundary.to_owned())
        }
        _ => {
            Err(Refusal::invalid("a multipart upload has the content type multipart/related with a boundary"))
        }
    }
}

/// The parts of a body.
pub(super) fn parts(body: &Bytes, boundary: &str) -> Result<Vec<Part>, Refusal> {
    let malformed = || Refusal::invalid("malformed multipart body");
    let delimiter = format!("\r\n--{boundary}");
    let finder = memmem::Finder::new(&delimiter);
    let mut at = body.strip_prefix(format!("--{boundary}").as_bytes()).ok_or_else(malformed)?;
    let mut parts = Vec::new();
    loop {
        if at.starts_with(b"--") {
            return Ok(parts);
        }
        at = at.strip_prefix(b"\r\n").ok_or_else(malformed)?;
        let end = finder.find(at).ok_or_else(malformed)?;
        parts.push(part(body, &at[..end]).ok_or_else(malformed)?);
        at = &at[end + delimiter.len()..];
    }
}

fn part(body: &Bytes, part: &[u8]) -> Option<Part> {
    let (headers, content) = if let Some(content) = part.strip_prefix(b"\r\n") {
        (&b""[..], content)
    } else {
        let end = memmem::find(part, b"\r\n\r\n")?;
        (&part[..end], &part[end + 4..])
    };
    let content_type = std::str::from_utf8(headers).ok()?.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-type").then(|| value.trim().to_owned())
    });
    Some(Part { content_type, body: body.slice_ref(content) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_cut_at_the_boundary_and_nowhere_else() {
        let body = b"--x\r\nContent-Type: application/json\r\n\r\n{}\r\n--x\r\n\r\na\r\n-x\r\n\r\n--x--\r\n";
        let parts = parts(&Bytes::from_static(body), "x").unwrap();
        let part = |content_type: Option<&str>, body| Part {
            content_type: content_type.map(str::to_owned),
            body: Bytes::from_static(body),
        };
        assert_eq!(parts, [part(Some("application/json"), b"{}"), part(None, b"a\r\n-x\r\n")]);
    }

    #[test]
    fn a_body_that_is_cut_off_is_refused() {
        for body in ["", "--x", "--x\r\n\r\n{}", "--x\r\n\r\n{}\r\n--x", "--y\r\n\r\n{}\r\n--y--"] {
            assert!(parts(&Bytes::copy_from_slice(body.as_bytes()), "x").is_err(), "{body:?}");
        }
    }
}
