//! The kinds on a real API server: it takes and refuses the manifests of `crds/tests`, with the messages that stand there.

use std::path::Path;

use penstock_e2e::{command::CommandError, files, layout::repository};

use crate::{place::Namespace, shared::install_kinds};

pub(crate) async fn manifests(namespace: Namespace) -> String {
    install_kinds(&namespace).await;
    is_unready_when_new(&namespace).await;
    let manifests = repository().join("crds/tests/manifests");
    let good = files::entries(&manifests.join("good")).unwrap();
    for path in &good {
        let taken = last_version(&namespace, &files::read(path).unwrap()).await;
        assert!(taken.is_ok(), "{}: {}", path.display(), taken.unwrap_err());
    }
    let bad = files::entries(&manifests.join("bad")).unwrap();
    for path in &bad {
        is_refused(&namespace, path).await;
    }
    format!("{} manifests taken, {} refused", good.len(), bad.len())
}

/// A job that no operator has looked at says so to tools that wait for it, such as `helm install --wait`.
async fn is_unready_when_new(namespace: &Namespace) {
    namespace.apply("batchjob.yaml").await;
    let observed = ["get", "batchjob/run", "--output=jsonpath={.status.observedGeneration}"];
    assert_eq!(namespace.kubectl(observed).run().await.unwrap(), "-1");
    namespace.kubectl(["delete", "batchjobs,providers", "--all"]).run().await.unwrap();
}

/// The message stands in the first line.
async fn is_refused(namespace: &Namespace, path: &Path) {
    let text = files::read(path).unwrap();
    let expected = text.lines().next().and_then(|line| line.strip_prefix("# refused: "));
    let expected = expected.unwrap_or_else(|| panic!("{} says what is expected", path.display()));
    match last_version(namespace, &text).await {
        Ok(()) => panic!("{} is taken", path.display()),
        Err(error) => assert!(
            error.to_string().contains(expected),
            "{}: expected `{expected}`, found `{error}`",
            path.display()
        ),
    }
}

/// Applies the versions of an object one after the other: what is said of the last, which is not stored.
async fn last_version(namespace: &Namespace, text: &str) -> Result<(), CommandError> {
    let versions: Vec<_> = text.split("---\n").collect();
    let (last, before) = versions.split_last().expect("a file holds a manifest");
    for version in before {
        namespace.apply_text((*version).to_owned()).await;
    }
    let apply = ["apply", "--dry-run=server", "--filename", "-"];
    let said = namespace.kubectl(apply).input(*last).run().await;
    if !before.is_empty() {
        namespace.kubectl(["delete", "batchjobs,providers", "--all"]).run().await.unwrap();
    }
    said.map(drop)
}
