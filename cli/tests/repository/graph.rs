//! The dependency graph as `cargo metadata` resolves it, without the edges that no enabled feature uses.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use cargo_metadata::{
    Dependency, DependencyKind, FeatureName, Metadata, MetadataCommand, Node, NodeDep, Package, PackageId,
};

use crate::manifests::Deny;

/// What is built of this workspace, on all platforms that `deny.toml` names.
pub(crate) static GRAPH: LazyLock<Graph> = LazyLock::new(Graph::load);

/// Packages and the edges between them.
pub(crate) struct Graph {
    packages: HashMap<PackageId, Package>,
    edges: HashMap<PackageId, Vec<(PackageId, DependencyKind)>>,
    members: Vec<PackageId>,
}

impl Graph {
    fn load() -> Self {
        let platforms = Deny::read()
            .graph
            .targets
            .into_iter()
            .flat_map(|target| ["--filter-platform".to_owned(), target]);
        let metadata = MetadataCommand::new()
            .manifest_path(crate::root().join("Cargo.toml"))
            .other_options([vec!["--locked".to_owned()], platforms.collect()].concat())
            .exec()
            .expect("cargo resolves the workspace");
        let Metadata { packages, workspace_members: members, resolve, .. } = metadata;
        let packages: HashMap<_, _> =
            packages.into_iter().map(|package| (package.id.clone(), package)).collect();
        let nodes = resolve.expect("metadata was asked for with dependencies").nodes;
        let edges = nodes.iter().map(|node| (node.id.clone(), edges_of(node, &packages))).collect();
        Self { packages, edges, members }
    }

    /// The crates of this workspace.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.members.iter().map(|id| &self.packages[id])
    }

    /// The packages that `package` names itself, as dependencies of these kinds.
    pub(crate) fn direct(
        &self,
        package: &PackageId,
        kinds: &[DependencyKind],
    ) -> impl Iterator<Item = &Package> {
        self.edges[package].iter().filter(|(_, kind)| kinds.contains(kind)).map(|(id, _)| &self.packages[id])
    }

    /// Everything that the given packages lead to over dependencies of these kinds, themselves among it.
    pub(crate) fn reachable<'a>(
        &'a self,
        from: impl IntoIterator<Item = &'a Package>,
        kinds: &[DependencyKind],
    ) -> Vec<&'a Package> {
        let mut found: Vec<_> = from.into_iter().collect();
        let mut seen: HashSet<_> = found.iter().map(|package| &package.id).collect();
        let mut next = 0;
        while let Some(package) = found.get(next).copied() {
            found.extend(self.direct(&package.id, kinds).filter(|dependency| seen.insert(&dependency.id)));
            next += 1;
        }
        found
    }

    /// Everything that building and testing this workspace uses.
    pub(crate) fn everything(&self) -> Vec<&Package> {
        use DependencyKind::{Build, Development, Normal};
        self.reachable(self.members(), &[Normal, Build, Development])
    }
}

fn edges_of(node: &Node, packages: &HashMap<PackageId, Package>) -> Vec<(PackageId, DependencyKind)> {
    let package = &packages[&node.id];
    let used = |edge: &NodeDep, kind: DependencyKind| {
        let name = &packages[&edge.pkg].name;
        let mut declarations = package.dependencies.iter().filter(|declared| *name == declared.name);
        declarations.any(|declared| declared.kind == kind && is_used(declared, package, &node.features))
    };
    let kinds = |edge: &NodeDep| edge.dep_kinds.iter().map(|info| info.kind).collect::<HashSet<_>>();
    let edges = node.deps.iter().flat_map(|edge| kinds(edge).into_iter().map(move |kind| (edge, kind)));
    edges.filter(|(edge, kind)| used(edge, *kind)).map(|(edge, kind)| (edge.pkg.clone(), kind)).collect()
}

/// Whether a package uses a dependency that it declares. Cargo resolves an optional one as soon as a weak feature such
/// as `ring?/alloc` mentions it, although nothing of it is built until `dep:ring` or `ring/std` asks for it.
fn is_used(declared: &Dependency, package: &Package, enabled: &[FeatureName]) -> bool {
    let name = declared.rename.as_ref().unwrap_or(&declared.name);
    let asks = |feature: &FeatureName| {
        package.features.get(feature.as_str()).into_iter().flatten().any(|value| {
            value.strip_prefix("dep:") == Some(name)
                || value.split_once('/').is_some_and(|(dependency, _)| dependency == name)
        })
    };
    !declared.optional || enabled.iter().any(asks)
}
