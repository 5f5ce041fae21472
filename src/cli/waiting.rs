//! Display while a command waits for its models.

use super::progress::Progress;
use crate::pool::{ModelState, ModelStatus, Pool};
use indicatif::HumanBytes;
use lm::hub::DownloadProgress;
use std::pin::pin;
use std::time::Duration;

/// Interval between two checks of the progress of the models.
const PAUSE: Duration = Duration::from_millis(500);

/// Waits for `work`, and shows meanwhile which model is downloaded, opened or loaded.
pub async fn for_models<T>(pool: &Pool, work: impl Future<Output = T>) -> T {
    showing(|| pool.status().iter().find_map(step), work).await
}

/// Waits for `work`, and shows `message` meanwhile, where there is one.
pub async fn showing<T>(message: impl Fn() -> Option<String>, work: impl Future<Output = T>) -> T {
    let (progress, mut work) = (Progress::new(None), pin!(work));
    loop {
        match tokio::time::timeout(PAUSE, &mut work).await {
            Ok(done) => return done,
            Err(_) => {
                if let Some(message) = message() {
                    progress.show(None, message);
                }
            }
        }
    }
}

/// Describes the progress of the files of a model.
pub fn opening(id: &str, progress: &DownloadProgress) -> String {
    let (done, total) = (progress.done(), progress.total());
    match done < total {
        true => format!("downloading `{id}`: {} of {}", HumanBytes(done), HumanBytes(total)),
        false => format!("opening `{id}`"),
    }
}

/// Describes what happens to a model now, if anything.
fn step(status: &ModelStatus) -> Option<String> {
    let id = &status.declaration.id;
    match &status.progress {
        Some(progress) => Some(opening(id, progress)),
        None => (status.state == ModelState::Loading).then(|| format!("loading `{id}`")),
    }
}
