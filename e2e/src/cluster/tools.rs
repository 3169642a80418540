//! The programs of the cluster that no Debian package has: built from Go modules, each set with its own `go.mod`.

use std::{path::PathBuf, time::Duration};

use crate::{
    command::{CommandError, Program},
    files::{self, FileError},
    layout::{Layout, repository},
};

/// A build from nothing on two cores that do other work as well.
const LIMIT: Duration = Duration::from_hours(1);

/// A folder of `e2e/tools`: one `go.mod`, and what is built of it.
struct Tools {
    folder: &'static str,
    programs: &'static [&'static str],
    packages: &'static [&'static str],
    /// A server that is not told its version calls itself v0.0.0.
    version: Option<&'static str>,
}

const TOOLS: [Tools; 3] = [
    Tools {
        folder: "kubernetes",
        programs: &[
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
            "kubelet",
            "kube-proxy",
            "kubectl",
        ],
        packages: &[
            "k8s.io/kubernetes/cmd/kube-apiserver",
            "k8s.io/kubernetes/cmd/kube-controller-manager",
            "k8s.io/kubernetes/cmd/kube-scheduler",
            "k8s.io/kubernetes/cmd/kubelet",
            "k8s.io/kubernetes/cmd/kube-proxy",
            "k8s.io/kubernetes/cmd/kubectl",
        ],
        version: Some("k8s.io/kubernetes"),
    },
    Tools {
        folder: "coredns",
        programs: &["coredns"],
        packages: &["github.com/coredns/coredns"],
        version: None,
    },
    Tools { folder: "helm", programs: &["helm"], packages: &["helm.sh/helm/v4/cmd/helm"], version: None },
];

/// A tool that is not there.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// Go says why.
    #[error(transparent)]
    Build(#[from] CommandError),
    /// A manifest.
    #[error(transparent)]
    File(#[from] FileError),
    /// The manifest does not say which version it wants.
    #[error("find the version of {module} in {path}: it must be required there")]
    Version {
        /// What is looked for.
        module: &'static str,
        /// Where.
        path: PathBuf,
    },
}

/// Builds what is not there yet, or is of other versions than the manifests say.
pub async fn build(layout: &Layout) -> Result<(), ToolError> {
    for tools in &TOOLS {
        tools.build(layout).await?;
    }
    Ok(())
}

impl Tools {
    async fn build(&self, layout: &Layout) -> Result<(), ToolError> {
        let folder = repository().join("e2e/tools").join(self.folder);
        let manifest = files::read(&folder.join("go.mod"))?;
        let wanted = manifest.clone() + &files::read(&folder.join("go.sum"))?;
        let stamp = layout.program(&format!("{}.built", self.folder));
        let built = files::read(&stamp).is_ok_and(|built| built == wanted);
        if built && self.programs.iter().all(|program| layout.program(program).is_file()) {
            return Ok(());
        }
        eprintln!("building {} from source, once: this takes minutes", self.programs.join(", "));
        let mut link = "-s -w".to_owned();
        if let Some(module) = self.version {
            let path = folder.join("go.mod");
            let version = required(&manifest, module).ok_or(ToolError::Version { module, path })?;
            link += &version_flags(version);
        }
        files::folder(&layout.program(""))?;
        Program::new("go")
            .arguments(["build", "-trimpath", "-mod=readonly", "-ldflags", &link, "-o"])
            .argument(layout.program(""))
            .arguments(self.packages)
            .inside(&folder)
            .variable("CGO_ENABLED", "0")
            .within(LIMIT)
            .watched()
            .await?;
        Ok(files::write(&stamp, wanted)?)
    }
}

/// The version of a module that a `go.mod` requires.
fn required<'a>(manifest: &'a str, module: &str) -> Option<&'a str> {
    manifest.lines().find_map(|line| {
        let line = line.trim().trim_start_matches("require ");
        line.strip_prefix(module)?.strip_prefix(' ')?.split_whitespace().next()
    })
}

/// How a Kubernetes program is told its version.
fn version_flags(version: &str) -> String {
    let mut numbers = version.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let package = "k8s.io/component-base/version";
    format!(" -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_kubernetes_is_that_of_its_manifest() {
        let manifest = files::read(&repository().join("e2e/tools/kubernetes/go.mod")).unwrap();
        let version = required(&manifest, "k8s.io/kubernetes").unwrap();
        let flags = version_flags(version);
        assert!(flags.contains(&format!(".gitVersion={version} ")), "{flags}");
        assert!(flags.contains(".gitMajor=1 "), "{flags}");
        assert_eq!(required(&manifest, "k8s.io/no-such-module"), None);
    }

    #[test]
    fn every_program_is_a_tool_of_its_manifest() {
        for tools in &TOOLS {
            let path = repository().join("e2e/tools").join(tools.folder).join("go.mod");
            let manifest = files::read(&path).unwrap();
            for package in tools.packages {
                let listed = manifest.lines().any(|line| line.trim().trim_start_matches("tool ") == *package);
                assert!(listed, "{package} is no tool of {}", path.display());
            }
        }
    }
}
