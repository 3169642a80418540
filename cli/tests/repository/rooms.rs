//! The rooms: the table in `docs/architecture.md` against the folders and manifests of the workspace.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Package};

use crate::{graph::GRAPH, markdown::Page};

/// Per room, named by its folder, the rooms that it imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The folder of a member, from the root.
fn folder(member: &Package) -> String {
    let folder = member.manifest_path.parent().expect("a manifest stands in a folder");
    folder.strip_prefix(crate::root()).expect("a member stands in the repository").to_string()
}

fn documented() -> Imports {
    let table = Page::read("docs/architecture.md").table(&["room", "owns", "may import"]);
    let rows = table.into_iter().map(|[room, owns, imports]| {
        assert!(!owns.is_empty(), "the table does not say what {room} owns");
        let imports = imports.split(", ").filter(|name| *name != "none").map(str::to_owned).collect();
        (room, imports)
    });
    rows.collect()
}

fn real() -> Imports {
    let imports = |member: &Package| {
        let dependencies = GRAPH.direct(&member.id, &[DependencyKind::Normal, DependencyKind::Build]);
        dependencies.filter(|package| package.source.is_none()).map(folder).collect()
    };
    GRAPH.members().map(|member| (folder(member), imports(member))).collect()
}

#[test]
fn every_room_stands_in_the_table_and_imports_exactly_what_the_table_says() {
    let (documented, real) = (documented(), real());
    let rooms = |imports: &Imports| imports.keys().cloned().collect::<Vec<_>>();
    assert_eq!(rooms(&documented), rooms(&real), "the table of rooms against the members of the workspace");
    for (room, imports) in &real {
        assert_eq!(
            &documented[room], imports,
            "what {room} may import (left) against what its manifest imports (right)"
        );
    }
}

#[test]
fn every_folder_of_a_room_has_its_sources() {
    for room in documented().keys() {
        assert!(crate::root().join(room).join("src").is_dir(), "{room}/src is missing");
    }
}
