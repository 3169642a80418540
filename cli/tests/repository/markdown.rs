//! Markdown pages: their tables, links, headings and code blocks, as a reader sees them.

use std::{
    mem::take,
    path::{Path, PathBuf},
};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// One page of the documentation.
pub(crate) struct Page {
    /// Where it is, from the root.
    pub(crate) path: PathBuf,
    text: String,
}

impl Page {
    pub(crate) fn read(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned(), text: crate::read(path) }
    }

    fn events(&self) -> impl Iterator<Item = Event<'_>> {
        Parser::new_ext(&self.text, Options::ENABLE_TABLES)
    }

    /// The rows below this header, as plain text.
    pub(crate) fn table<const N: usize>(&self, header: &[&str; N]) -> Vec<[String; N]> {
        let (mut tables, mut rows, mut cells, mut text) = (Vec::new(), Vec::new(), Vec::new(), String::new());
        for event in self.events() {
            match event {
                Event::Start(Tag::TableCell) => text.clear(),
                Event::Text(part) | Event::Code(part) => text.push_str(&part),
                Event::End(TagEnd::TableCell) => cells.push(take(&mut text)),
                Event::End(TagEnd::TableHead | TagEnd::TableRow) => rows.push(take(&mut cells)),
                Event::End(TagEnd::Table) => tables.push(take(&mut rows)),
                _ => {}
            }
        }
        let found = tables.into_iter().find(|rows| rows.first().is_some_and(|first| first == header));
        let found = found.unwrap_or_else(|| panic!("{} has no table {header:?}", self.path.display()));
        found
            .into_iter()
            .skip(1)
            .map(|cells| cells.try_into().expect("a row has as many cells as its header"))
            .collect()
    }

    /// Where the page's links and images lead.
    pub(crate) fn links(&self) -> Vec<String> {
        let target = |event| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                Some(dest_url.to_string())
            }
            _ => None,
        };
        self.events().filter_map(target).collect()
    }

    /// The anchors of the page's headings, as forges derive them.
    pub(crate) fn anchors(&self) -> Vec<String> {
        let (mut anchors, mut text) = (Vec::new(), String::new());
        for event in self.events() {
            match event {
                Event::Start(Tag::Heading { .. }) => text.clear(),
                Event::Text(part) | Event::Code(part) => text.push_str(&part),
                Event::End(TagEnd::Heading(_)) => anchors.push(anchor(&take(&mut text))),
                _ => {}
            }
        }
        anchors
    }

    /// The code blocks in this language.
    pub(crate) fn code_blocks(&self, language: &str) -> Vec<String> {
        let mut blocks = Vec::new();
        let mut inside = false;
        for event in self.events() {
            match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) if &*info == language => {
                    inside = true;
                    blocks.push(String::new());
                }
                Event::Text(text) if inside => blocks.last_mut().expect("a block was begun").push_str(&text),
                Event::End(TagEnd::CodeBlock) => inside = false,
                _ => {}
            }
        }
        blocks
    }
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}
