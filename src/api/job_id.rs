//! The id of a job in a path.

use super::problem::Problem;
use super::request_note::RequestNote;
use crate::jobs::{JobError, JobKind};
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use std::marker::PhantomData;
use uuid::Uuid;

/// The id of a job of one kind in a path.
pub struct JobId<K>(pub Uuid, pub PhantomData<K>);

impl<K: JobKind> JobId<K> {
    /// The id that a text is.
    ///
    /// # Errors
    /// Where it is no UUID, so that there is no job of this id.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let id = text.parse().map_err(|_| JobError::NotFound(K::NAME))?;
        Ok(Self(id, PhantomData))
    }
}

impl<S: Send + Sync, K: JobKind> FromRequestParts<S> for JobId<K> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = Path::<String>::from_request_parts(parts, state).await.ok();
        let id = Self::parse(&text.map(|Path(text)| text).unwrap_or_default())?;
        RequestNote::from_extensions(&parts.extensions).update(|work| work.job = Some(id.0.to_string()));
        Ok(id)
    }
}
