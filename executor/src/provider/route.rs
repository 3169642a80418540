//! Where requests go: which server and key serve which model.

use std::{collections::HashMap, fmt, sync::Arc};

use http::{
    HeaderMap, HeaderValue, Uri, header,
    uri::{InvalidUri, Scheme},
};
use penstock_batchfile::Format;
use penstock_job::{
    CanonicalSpec,
    spec::{BaseUrl, KeySource, ProviderKind, ProviderSpec, Tls},
};

use super::{
    ProviderError,
    account::Account,
    dialect::Dialect,
    key::{self, ApiKey, Key},
};
use crate::client::{Pool, Pools};

const USER_AGENT: &str = concat!("penstock/", env!("CARGO_PKG_VERSION"));

/// One server, ready to be asked.
pub(super) struct Route {
    base: BaseUrl,
    address: Address,
    dialect: Dialect,
    pub(super) pool: Arc<Pool>,
    pub(super) key: Option<Key>,
    /// The headers that all its requests have.
    headers: HeaderMap,
}

/// Where a route's requests go.
enum Address {
    /// To one URL.
    Fixed(Uri),
    /// To a URL that has the model's name in it.
    OfModel { api_version: Option<Box<str>> },
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
    /// A route for `model`, or for every model.
    fn new(
        base_url: &str,
        model: Option<&str>,
        key: Option<&KeySource>,
        tls: &Tls,
        spec: &CanonicalSpec,
        pools: &mut Pools,
    ) -> Result<Arc<Self>, ProviderError> {
        let dialect = Dialect::of(spec);
        let base = BaseUrl::of(spec.provider.kind, base_url)?;
        let api_version = spec.provider.api_version.as_deref();
        let url = dialect.url(&base, model.unwrap_or_default(), api_version);
        let uri: Uri = url.as_str().parse().map_err(|_| ProviderError::NoAddress(url.to_string()))?;
        let pool = pools.pool(&uri, tls)?;
        let headers = headers(dialect, &uri, &pool)?;
        let address = if model.is_none() && dialect.names_model_in_url() {
            Address::OfModel { api_version: api_version.map(Into::into) }
        } else {
            Address::Fixed(uri)
        };
        let key = key.map(|source| Key::read(source.clone(), dialect.key_header())).transpose()?;
        Ok(Arc::new(Self { base, address, dialect, pool, key, headers }))
    }

    /// Whose limits its requests use up, by the key as it is now.
    pub(super) fn account(&self) -> Account {
        let key = self.key.as_ref().map(Key::current);
        Account::new(self.dialect.kind(), &self.base, key.as_ref().map(ApiKey::secret))
    }

    /// Where a request for a model goes.
    pub(super) fn uri(&self, model: &str) -> Result<Uri, InvalidUri> {
        match &self.address {
            Address::Fixed(uri) => Ok(uri.clone()),
            Address::OfModel { api_version } => {
                self.dialect.url(&self.base, model, api_version.as_deref()).as_str().parse()
            }
        }
    }

    /// The base URL.
    pub(super) fn server(&self) -> &str {
        self.base.as_str()
    }

    /// Where the server tells its load, if it does.
    pub(super) fn metrics_uri(&self) -> Result<Uri, InvalidUri> {
        format!("{}/metrics", self.base).parse()
    }

    /// The key for the next request.
    pub(super) fn key(&self) -> Option<ApiKey> {
        self.key.as_ref().map(Key::current)
    }

    /// The headers of each request but those that belong to the connection.
    pub(super) fn headers(&self, key: Option<&ApiKey>) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.extend(key.map(ApiKey::header));
        headers
    }
}

/// What all requests to the server of `uri` have in common.
fn headers(dialect: Dialect, uri: &Uri, pool: &Pool) -> Result<HeaderMap, ProviderError> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
    headers.extend(dialect.header());
    let for_proxy = pool.proxy_authorization();
    headers.extend(for_proxy.map(|value| (header::PROXY_AUTHORIZATION, value.clone())));
    // The client would write it anew for each request. HTTP/2, which is spoken over TLS only, has none.
    if let Some(authority) = uri.authority().filter(|_| uri.scheme() == Some(&Scheme::HTTP)) {
        let host = HeaderValue::from_str(authority.as_str());
        headers.insert(header::HOST, host.map_err(|_| ProviderError::NoAddress(uri.to_string()))?);
    }
    Ok(headers)
}

impl fmt::Debug for Route {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address: &dyn fmt::Display = match &self.address {
            Address::Fixed(uri) => uri,
            Address::OfModel { .. } => &self.base.as_str(),
        };
        formatter.debug_tuple("Route").field(&format_args!("{address}")).finish()
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
                let (base_url, key) = (&route.base_url, route.api_key.as_ref());
                let made = Route::new(base_url, Some(model), key, &route.tls, spec, &mut pools)?;
                Ok((Arc::from(model.as_str()), made))
            });
            return Ok(Self::PerModel(routes.collect::<Result<_, ProviderError>>()?));
        }
        let own = provider.base_url.as_deref().or(spec.provider.base_url.as_deref());
        let base_url = own.ok_or(ProviderError::NoBaseUrl)?;
        let default = key::first_set(Dialect::of(spec).keys());
        let key = provider.api_key.as_ref().or(default.as_ref());
        // Prompts name no model, so theirs is the job's.
        let model = spec.model.as_deref().filter(|_| spec.format == Format::Prompts);
        Ok(Self::Single(Route::new(base_url, model, key, &provider.tls, spec, &mut pools)?))
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
