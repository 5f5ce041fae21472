//! A part of the list of audits, newest first.

use super::status::{AuditSnapshot, AuditStatus};
use uuid::Uuid;

/// Which audits to list.
#[derive(Clone, Debug)]
pub struct AuditFilter {
    /// Only those that stand so.
    pub status: Option<AuditStatus>,
    /// Only those of the model of this id.
    pub model: Option<String>,
    /// Only those older than this one, which may be gone.
    pub after: Option<Uuid>,
    /// The most audits of a page.
    pub limit: usize,
}

/// Audits, newest first.
#[derive(Clone, Debug)]
pub struct AuditPage {
    pub audits: Vec<AuditSnapshot>,
    /// The last audit of this page, where there are more after it.
    pub next: Option<Uuid>,
}

impl AuditFilter {
    /// The page of these audits, which come newest first.
    pub fn page(&self, newest_first: impl Iterator<Item = AuditSnapshot>) -> AuditPage {
        // Ids of version 7 grow with time.
        let mut listed =
            newest_first.filter(|audit| self.after.is_none_or(|after| audit.id < after) && self.matches(audit));
        let audits: Vec<AuditSnapshot> = listed.by_ref().take(self.limit).collect();
        let has_more = listed.next().is_some();
        AuditPage { next: audits.last().map(|audit| audit.id).filter(|_| has_more), audits }
    }

    fn matches(&self, audit: &AuditSnapshot) -> bool {
        self.status.is_none_or(|status| audit.status == status)
            && self.model.as_ref().is_none_or(|model| audit.subject.model == *model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audits::status::AuditSubject;
    use std::sync::Arc;

    fn snapshot(number: usize) -> AuditSnapshot {
        let model = if number.is_multiple_of(2) { "even" } else { "odd" };
        let subject = AuditSubject { model: model.to_owned(), total: number, ..AuditSubject::default() };
        let status = if number == 3 { AuditStatus::Running } else { AuditStatus::Queued };
        AuditSnapshot { status, ..AuditSnapshot::new(Arc::new(subject)) }
    }

    #[test]
    fn pages_follow_each_other_without_gaps() {
        let audits: Vec<AuditSnapshot> = (0..7).map(snapshot).collect();
        let page = |status: Option<AuditStatus>, model: Option<&str>, after: Option<usize>, limit: usize| {
            let after = after.map(|number| audits[number].id);
            let filter = AuditFilter { status, model: model.map(str::to_owned), after, limit };
            let page = filter.page(audits.iter().rev().cloned());
            let numbers: Vec<usize> = page.audits.iter().map(|audit| audit.subject.total).collect();
            let next = page.next.and_then(|id| audits.iter().position(|audit| audit.id == id));
            (numbers, next)
        };
        assert_eq!(page(None, None, None, 3), (vec![6, 5, 4], Some(4)));
        assert_eq!(page(None, None, Some(4), 3), (vec![3, 2, 1], Some(1)));
        assert_eq!(page(None, None, Some(1), 3), (vec![0], None));
        assert_eq!(page(None, None, None, 7), ((0..7).rev().collect(), None));
        assert_eq!(page(None, Some("odd"), None, 2), (vec![5, 3], Some(3)));
        assert_eq!(page(None, Some("odd"), Some(4), 2), (vec![3, 1], None));
        assert_eq!(page(Some(AuditStatus::Running), Some("odd"), None, 1), (vec![3], None));
        assert_eq!(page(Some(AuditStatus::Failed), None, None, 1), (vec![], None));
    }
}
