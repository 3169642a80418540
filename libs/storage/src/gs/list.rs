//! Listing, page by page.

use google_cloud_gax::options::RequestOptionsBuilder as _;
use google_cloud_storage::builder::storage_control::ListObjects;

use super::GsStore;
use super::bucket::answered;
use super::object::listed;
use crate::Result;
use crate::error::Action;
use crate::name::ObjectName;
use crate::store::Page;

/// Objects a page: as many as the service gives at most.
const PAGE: i32 = 1000;

impl GsStore {
    /// See [`Store::list`](crate::Store::list). Names that a job cannot have written are left out.
    pub(super) async fn list_page(&self, prefix: &str, start_after: Option<&str>) -> Result<Page> {
        let start = start_after.map(|name| format!("{}{name}", self.prefix)).unwrap_or_default();
        let mut token = String::new();
        loop {
            let request = self
                .listing(format!("{}{prefix}", self.prefix))
                .set_page_size(PAGE)
                .set_lexicographic_start(&start)
                .set_page_token(token);
            let answer =
                answered(self.bucket.patience_in_all(), Action::List, prefix, request.send()).await?;
            // The service begins with `start` itself, and may give pages without objects.
            let after = answer.objects.iter().filter(|object| start.is_empty() || object.name != start);
            let last = after.clone().last().and_then(|object| self.name_below(&object.name));
            if last.is_none() && !answer.next_page_token.is_empty() {
                token = answer.next_page_token;
                continue;
            }
            let objects = after.filter_map(|object| {
                let name = ObjectName::parse(self.name_below(&object.name)?).ok()?;
                Some(listed(name, object))
            });
            let next = last.filter(|_| !answer.next_page_token.is_empty());
            return Ok(Page { objects: objects.collect(), next });
        }
    }

    /// Lists one object below the prefix, to see whether the bucket can be used.
    pub(super) async fn probe(&self) -> Result<()> {
        let place = format!("gs://{}/{}", self.bucket.name(), self.prefix);
        let request = self.listing(self.prefix.clone()).set_page_size(1);
        answered(self.bucket.patience_in_all(), Action::List, place, request.send()).await.map(drop)
    }

    fn listing(&self, prefix: String) -> ListObjects {
        self.bucket
            .control
            .list_objects()
            .set_parent(self.bucket.resource())
            .set_prefix(prefix)
            .with_attempt_timeout(self.bucket.patience)
    }

    fn name_below(&self, path: &str) -> Option<String> {
        path.strip_prefix(&self.prefix).map(str::to_owned)
    }
}
