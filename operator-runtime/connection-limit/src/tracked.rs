//! Service that notes when a request arrives and when its response is ready.

use std::pin::Pin;

use http::{Request, Response};
use hyper::body::Body;
use hyper::service::Service;

use crate::Handle;

/// Wraps the service of one connection. Each request carries the [`Handle`] of its connection as an extension.
#[derive(Debug, Clone)]
pub struct Tracked<S> {
    service: S,
    handle: Handle,
}

impl<S> Tracked<S> {
    /// Wraps a service.
    pub const fn new(service: S, handle: Handle) -> Self {
        Self { service, handle }
    }
}

/// Notes the end of a request, also if its client went away.
struct Answering(Handle);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.progress();
    }
}

impl<S, B, R> Service<Request<B>> for Tracked<S>
where
    B: Body,
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn call(&self, mut request: Request<B>) -> Self::Future {
        self.handle.begin(request.body().is_end_stream());
        let answering = Answering(self.handle.clone());
        request.extensions_mut().insert(self.handle.clone());
        let answer = self.service.call(request);
        Box::pin(async move {
            let _answering = answering;
            answer.await
        })
    }
}
