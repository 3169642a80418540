//! Where requests go: which server and key serve which model.

use std::{collections::HashMap, fmt, sync::Arc};

use http::{HeaderMap, HeaderValue, header};
use penstock_batchfile::Endpoint;
use penstock_job::{
    CanonicalSpec,
    spec::{BaseUrl, KeySource, ProviderKind, ProviderSpec, Tls},
};
use url::Url;

use super::{
    ProviderError,
    client::{Pool, Pools},
    key::{ApiKey, Key},
};

/// The variable that OpenAI's own tools read the key from.
const OPENAI_KEY: &str = "OPENAI_API_KEY";

/// One server, ready to be asked.
pub(super) struct Route {
    /// The endpoint's full URL.
    pub(super) url: Url,
    pub(super) pool: Arc<Pool>,
    pub(super) key: Option<Key>,
}

/// Which route a model takes.
#[derive(Debug)]
pub(super) enum Routing {
    /// One for every model.
    Single(Arc<Route>),
    /// A model that is not listed has none.
    PerModel(HashMap<Arc<str>, Arc<Route>>),
}

impl Route {
    fn new(
        base_url: &str,
        key: Option<&KeySource>,
        tls: &Tls,
        endpoint: Endpoint,
        pools: &mut Pools,
    ) -> Result<Arc<Self>, ProviderError> {
        let url = BaseUrl::parse(base_url)?.endpoint(endpoint);
        let url: Url = url.parse().expect("invariant: a base URL and a path make a URL");
        let pool = pools.pool(&url, tls)?;
        let key = key.cloned().map(Key::read).transpose()?;
        Ok(Arc::new(Self { url, pool, key }))
    }

    /// The headers of each request but those that belong to the connection, with the key that they carry.
    pub(super) fn headers(&self) -> (HeaderMap, Option<ApiKey>) {
        let mut headers = HeaderMap::with_capacity(4);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let key = self.key.as_ref().map(Key::current);
        if let Some(key) = &key {
            headers.insert(header::AUTHORIZATION, key.authorization());
        }
        (headers, key)
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Route").field(&self.url.as_str()).finish()
    }
}

impl Routing {
    /// Reads the keys and builds the clients. Where models have routes the provider's own address is not used, and no
    /// route inherits its key: a key goes only where it was written down for.
    pub(super) fn new(
        spec: &CanonicalSpec,
        provider: &ProviderSpec,
        mut pools: Pools,
    ) -> Result<Self, ProviderError> {
        if !provider.routes.is_empty() && provider.kind != ProviderKind::Simulated {
            let routes = provider.routes.iter().map(|(model, route)| {
                let made = Route::new(
                    &route.base_url,
                    route.api_key.as_ref(),
                    &route.tls,
                    spec.endpoint,
                    &mut pools,
                )?;
                Ok((Arc::from(model.as_str()), made))
            });
            return Ok(Self::PerModel(routes.collect::<Result<_, ProviderError>>()?));
        }
        let own = provider.base_url.as_deref().or(spec.provider.base_url.as_deref());
        let base_url = own.ok_or(ProviderError::NoBaseUrl)?;
        let default = (provider.kind == ProviderKind::OpenAi).then(|| KeySource::Env(OPENAI_KEY.to_owned()));
        let key = provider.api_key.as_ref().or(default.as_ref());
        Ok(Self::Single(Route::new(base_url, key, &provider.tls, spec.endpoint, &mut pools)?))
    }

    /// The route of a model.
    pub(super) fn of(&self, model: &str) -> Option<&Arc<Route>> {
        match self {
            Self::Single(route) => Some(route),
            Self::PerModel(routes) => routes.get(model),
        }
    }

    /// Every route.
    pub(super) fn all(&self) -> Vec<Arc<Route>> {
        match self {
            Self::Single(route) => vec![Arc::clone(route)],
            Self::PerModel(routes) => routes.values().map(Arc::clone).collect(),
        }
    }
}
