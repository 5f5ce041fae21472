//! Plans, each under the digest of its content.

use super::error::{StoreError, count, time};
use super::open::Store;
use super::schema::query_all_columns;
use super::seal::{check_seal, seal};
use crate::access::Principal;
use sqlx::Row;
use sqlx::any::AnyRow;
use time::OffsetDateTime;

pub const MAX_PLANS: usize = 10_000;

/// A plan as it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanRow {
    pub content: String,
    pub created_at: OffsetDateTime,
}

impl Store {
    /// Keeps a plan of an owner; one that is known keeps the time at which it was made first. None where the owner has as many as
    /// one may have.
    pub async fn add_plan(&self, owner: &Principal, id: &str, content: &str) -> Result<Option<PlanRow>, StoreError> {
        let statement = "SELECT CAST(COUNT(*) AS BIGINT) AS plans FROM plans WHERE owner = $1 AND plan <> $2";
        let row = sqlx::query(statement).bind(owner.name()).bind(id).fetch_one(&self.readers).await?;
        if count(&row, "plans")? >= MAX_PLANS {
            return Ok(None);
        }
        let mut transaction = self.pool.begin().await?;
        let statement = "INSERT INTO plans (owner, plan, content, created_at) VALUES ($1, $2, $3, {now}) \
                         ON CONFLICT DO NOTHING RETURNING *";
        let query = query_all_columns(self.dialect.sql(statement)).bind(owner.name()).bind(id).bind(content);
        for row in &query.fetch_all(&mut *transaction).await? {
            let query = sqlx::query("UPDATE plans SET seal = $3 WHERE owner = $1 AND plan = $2");
            query.bind(owner.name()).bind(id).bind(plan_seal(row)?).execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        self.plan(owner, id).await
    }

    /// The plan of an id that this owner has made.
    pub async fn plan(&self, owner: &Principal, id: &str) -> Result<Option<PlanRow>, StoreError> {
        // PostgreSQL has no texts with such a character.
        if id.contains('\0') {
            return Ok(None);
        }
        let statement = "SELECT * FROM plans WHERE owner = $1 AND plan = $2";
        let row = query_all_columns(statement).bind(owner.name()).bind(id).fetch_optional(&self.readers).await?;
        row.as_ref().map(plan_row).transpose()
    }
}

pub(super) fn plan_row(row: &AnyRow) -> Result<PlanRow, StoreError> {
    check_seal(row, "seal", &plan_seal(row)?, format_args!("the plan {}", row.try_get::<String, _>("plan")?))?;
    Ok(PlanRow { content: row.try_get("content")?, created_at: time(row.try_get("created_at")?)? })
}

fn plan_seal(row: &AnyRow) -> Result<String, StoreError> {
    let text = |column| row.try_get::<String, _>(column);
    seal(&(text("owner")?, text("plan")?, row.try_get::<i64, _>("created_at")?), text("content")?)
}
