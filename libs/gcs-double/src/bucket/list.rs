//! Listing: the objects of a bucket in order of their names, by pages.

use std::{
    collections::BTreeMap,
    ops::Bound::{Excluded, Included, Unbounded},
    sync::Arc,
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

use super::{Object, Refusal};
use crate::name::ObjectName;

/// What is to be listed.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListRequest {
    /// What names begin with.
    pub(crate) prefix: String,
    /// Names that have it after the prefix are told once, up to and with it.
    pub(crate) delimiter: Option<String>,
    /// Whether a name that ends with the first delimiter is told as an object as well.
    pub(crate) include_trailing_delimiter: bool,
    /// The first name.
    pub(crate) start: String,
    /// The name before which it ends.
    pub(crate) end: Option<String>,
    /// Where the page before ended.
    pub(crate) token: Option<String>,
    /// The most objects and prefixes of the page.
    pub(crate) page_size: usize,
}

/// A page.
#[derive(Debug, Clone, Default)]
pub(crate) struct Page {
    pub(crate) objects: Vec<Arc<Object>>,
    pub(crate) prefixes: Vec<String>,
    /// Where the next page goes on; `None` on the last.
    pub(crate) next: Option<String>,
}

/// The last thing of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Last {
    Object(String),
    Prefix(String),
}

impl ListRequest {
    /// The page that it asks for.
    pub(super) fn page(&self, objects: &BTreeMap<ObjectName, Arc<Object>>) -> Result<Page, Refusal> {
        let mut last = self.token.as_deref().map(Last::read).transpose()?;
        let start = self.prefix.as_str().max(&self.start);
        let from = match &last {
            Some(Last::Object(name) | Last::Prefix(name)) if name.as_str() >= start => {
                Excluded(name.as_str())
            }
            _ => Included(start),
        };
        let mut page = Page::default();
        for (name, object) in objects.range::<str, _>((from, Unbounded)) {
            let name = name.as_str();
            let past_end = self.end.as_deref().is_some_and(|end| name >= end);
            if past_end || !name.starts_with(&self.prefix) {
                break;
            }
            let group = self.group(name);
            let told = matches!((&last, group), (Some(Last::Prefix(last)), Some(group)) if last == group);
            let as_object = match group {
                None => true,
                Some(group) => self.include_trailing_delimiter && group == name,
            };
            if told && !as_object {
                continue;
            }
            if page.objects.len() + page.prefixes.len() >= self.page_size {
                page.next = last.map(|last| last.write());
                return Ok(page);
            }
            if let Some(group) = group.filter(|_| !told) {
                page.prefixes.push(group.to_owned());
            }
            if as_object {
                page.objects.push(Arc::clone(object));
            }
            last = Some(match group {
                Some(group) => Last::Prefix(group.to_owned()),
                None => Last::Object(name.to_owned()),
            });
        }
        Ok(page)
    }

    /// What a name is told as where a delimiter follows the prefix.
    fn group<'a>(&self, name: &'a str) -> Option<&'a str> {
        let delimiter = self.delimiter.as_deref().filter(|delimiter| !delimiter.is_empty())?;
        let after = &name[self.prefix.len()..];
        let end = self.prefix.len() + after.find(delimiter)? + delimiter.len();
        Some(&name[..end])
    }
}

impl Last {
    fn write(&self) -> String {
        let (kind, name) = match self {
            Self::Object(name) => ('o', name),
            Self::Prefix(name) => ('p', name),
        };
        BASE64_URL_SAFE_NO_PAD.encode(format!("{kind}{name}"))
    }

    fn read(token: &str) -> Result<Self, Refusal> {
        let decoded = BASE64_URL_SAFE_NO_PAD.decode(token).ok();
        let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        match text.split_at_checked(1) {
            Some(("o", name)) => Ok(Self::Object(name.to_owned())),
            Some(("p", name)) => Ok(Self::Prefix(name.to_owned())),
            _ => Err(Refusal::invalid(format!("page token {token:?}"))),
        }
    }
}
