//! Plans, each under the digest of its content.

use super::error::StoreError;
use super::open::Store;
use super::owner::Owner;
use super::rows::time;
use sqlx::Row;
use sqlx::any::AnyRow;
use time::OffsetDateTime;

/// A plan as it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanRow {
    pub content: String,
    pub created_at: OffsetDateTime,
}

impl Store {
    /// Keeps a plan of an owner; one that is known keeps the time at which it was made first.
    pub async fn add_plan(&self, owner: &Owner, id: &str, content: &str) -> Result<PlanRow, StoreError> {
        let statement =
            "INSERT INTO plans (owner, plan, content, created_at) VALUES ($1, $2, $3, {now}) ON CONFLICT DO NOTHING";
        sqlx::query(self.dialect.sql(statement)).bind(owner.name()).bind(id).bind(content).execute(&self.pool).await?;
        let statement = "SELECT * FROM plans WHERE owner = $1 AND plan = $2";
        let row = sqlx::query(statement).bind(owner.name()).bind(id).fetch_one(&self.pool).await?;
        plan_row(&row)
    }

    /// The plan of an id that this client sees.
    pub async fn plan(&self, client: &Owner, id: &str) -> Result<Option<PlanRow>, StoreError> {
        let statement =
            "SELECT * FROM plans WHERE plan = $1 AND ($2 IS NULL OR owner = $2) ORDER BY created_at LIMIT 1";
        let row = sqlx::query(statement).bind(id).bind(client.restriction()).fetch_optional(&self.pool).await?;
        row.as_ref().map(plan_row).transpose()
    }
}

fn plan_row(row: &AnyRow) -> Result<PlanRow, StoreError> {
    Ok(PlanRow { content: row.try_get("content")?, created_at: time(row.try_get("created_at")?)? })
}
