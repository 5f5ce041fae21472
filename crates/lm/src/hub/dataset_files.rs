//! Selection of the Parquet files of a split of a dataset.
//!
//! The split and the configuration of a file are recognised by its path, in the forms that the Hub's tools write:
//!
//! ```text
//! data/train-00000-of-00002.parquet            train of the only configuration, part 0 of 2
//! data/train-00000-of-00002-d22a0beb.parquet   the same, as older versions wrote it
//! en/train-00000-of-00001.parquet              train of the configuration en
//! en/train/0000.parquet                        the same, as the Hub converts datasets of other formats
//! en/train.parquet                             the same
//! ```

use super::RepoId;
use std::collections::BTreeSet;
use std::fmt;

/// Maximum number of splits listed in a message.
const MAX_LISTED: usize = 20;

/// A split of a dataset of the Hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetSplit {
    pub repo: RepoId,
    /// The configuration, which is also called subset; none for the only one or the default one.
    pub config: Option<String>,
    pub split: String,
}

impl DatasetSplit {
    /// Parses `OWNER/NAME:SPLIT` or `OWNER/NAME/CONFIG:SPLIT`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (path, split) = text.rsplit_once(':').filter(|(_, split)| !split.is_empty() && !split.contains('/'))?;
        let (repo, config) = match path.match_indices('/').nth(1) {
            Some((second, _)) => (&path[..second], Some(&path[second + 1..])),
            None => (path, None),
        };
        if config.is_some_and(str::is_empty) {
            return None;
        }
        Some(Self { repo: RepoId::parse(repo)?, config: config.map(str::to_owned), split: split.to_owned() })
    }
}

impl fmt::Display for DatasetSplit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (slash, config) = self.config.as_ref().map_or(("", ""), |config| ("/", config));
        write!(f, "{}{slash}{config}:{}", self.repo, self.split)
    }
}

/// A Parquet file of a dataset, as its path describes it.
struct ParquetFile<'a> {
    path: &'a str,
    /// Empty for the default configuration.
    config: String,
    split: &'a str,
    /// The number of files of the split, where the path says it.
    parts: Option<usize>,
}

/// The paths of the files of a split among those of a repository, in the order of its rows.
pub fn select<'a>(paths: impl Iterator<Item = &'a str>, wanted: &DatasetSplit) -> Result<Vec<String>, String> {
    let files: Vec<ParquetFile<'_>> = paths.filter_map(ParquetFile::parse).collect();
    let of_split = || files.iter().filter(|file| file.split == wanted.split);
    let configs: BTreeSet<&str> = of_split().map(|file| file.config.as_str()).collect();
    let config = match &wanted.config {
        Some(config) if config == "default" => "",
        Some(config) => config,
        None if configs.len() > 1 && !configs.contains("") => {
            let (configs, split) = (listed(configs.iter()), &wanted.split);
            return Err(format!("single configuration with the split `{split}`; name one of {configs}"));
        }
        None if configs.contains("") => "",
        None => configs.first().copied().unwrap_or(""),
    };
    let mut parts: Vec<&ParquetFile<'_>> = of_split().filter(|file| file.config == config).collect();
    let Some(first) = parts.first() else {
        let splits: BTreeSet<String> = files.iter().map(|file| name(&file.config, file.split)).collect();
        let wanted = name(wanted.config.as_deref().unwrap_or(""), &wanted.split);
        return Err(match splits.is_empty() {
            true => "Parquet files".to_owned(),
            false => format!("split {wanted}; its splits are {}", listed(splits.iter())),
        });
    };
    if let Some(count) = first.parts.filter(|count| *count != parts.len()) {
        return Err(format!("complete split `{}`: there are {} of {count} Parquet files", wanted.split, parts.len()));
    }
    parts.sort_by_key(|file| file.path);
    Ok(parts.iter().map(|file| file.path.to_owned()).collect())
}

impl<'a> ParquetFile<'a> {
    /// None for a file that is not Parquet.
    fn parse(path: &'a str) -> Option<Self> {
        let stem = path.strip_suffix(".parquet")?;
        let (directory, stem) = stem.rsplit_once('/').unwrap_or(("", stem));
        let numbered = stem.bytes().all(|byte| byte.is_ascii_digit()) && !directory.is_empty();
        let (directory, split, parts) = match part_of(stem) {
            Some((split, parts)) => (directory, split, Some(parts)),
            None if numbered => {
                let (directory, split) = directory.rsplit_once('/').unwrap_or(("", directory));
                (directory, split, None)
            }
            None => (directory, stem, None),
        };
        let config: Vec<&str> = directory.split('/').filter(|name| !["", "data", "default"].contains(name)).collect();
        Some(Self { path, config: config.join("/"), split, parts })
    }
}

/// The split and the number of parts in `train-00000-of-00002`, perhaps followed by `-` and a digest.
fn part_of(stem: &str) -> Option<(&str, usize)> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (before, after) = stem.rsplit_once("-of-")?;
    let (split, part) = before.rsplit_once('-')?;
    let count = after.split_once('-').map_or(after, |(count, _)| count);
    if is_number(part) && is_number(count) { Some((split, count.parse().ok()?)) } else { None }
}

fn name(config: &str, split: &str) -> String {
    if config.is_empty() { format!("`{split}`") } else { format!("`{split}` of `{config}`") }
}

fn listed(names: impl ExactSizeIterator<Item = impl fmt::Display>) -> String {
    let more = names.len().saturating_sub(MAX_LISTED);
    let mut list: Vec<String> = names.take(MAX_LISTED).map(|name| name.to_string()).collect();
    if more > 0 {
        list.push(format!("{more} more"));
    }
    list.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(paths: &[&str], wanted: &str) -> Result<Vec<String>, String> {
        select(paths.iter().copied(), &DatasetSplit::parse(wanted).unwrap())
    }

    #[test]
    fn a_split_has_a_repository_and_perhaps_a_configuration() {
        let parsed = |text| DatasetSplit::parse(text).map(|split| (split.repo.to_string(), split.config, split.split));
        let config = |name: &str| Some(name.to_owned());
        assert_eq!(parsed("a/b:train"), Some(("a/b".to_owned(), None, "train".to_owned())));
        assert_eq!(
            parsed("a/b/wikipedia_(en):ngram_13_0.8"),
            Some(("a/b".to_owned(), config("wikipedia_(en)"), "ngram_13_0.8".to_owned()))
        );
        assert_eq!(parsed("a/b/c/d:x"), Some(("a/b".to_owned(), config("c/d"), "x".to_owned())));
        for bad in ["", "a/b", "a/b:", ":x", "a/b/:x", "a:b/c", "../b:x"] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
        for text in ["a/b:train", "a/b/en:train"] {
            assert_eq!(DatasetSplit::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn files_are_recognised_by_their_paths() {
        let paths = [
            "README.md",
            "data/L64-00001-of-00002-a1.parquet",
            "data/L64-00000-of-00002-b2.parquet",
            "data/L64_paraphrased-00000-of-00001.parquet",
            "en/train/0000.parquet",
            "en/train/0001.parquet",
            "de/train/0000.parquet",
            "default/test/0000.parquet",
            "single.parquet",
        ];
        assert_eq!(selected(&paths, "a/b:L64").unwrap(), [paths[2], paths[1]]);
        assert_eq!(selected(&paths, "a/b/default:L64_paraphrased").unwrap(), [paths[3]]);
        assert_eq!(selected(&paths, "a/b/en:train").unwrap(), [paths[4], paths[5]]);
        assert_eq!(selected(&paths, "a/b:test").unwrap(), [paths[7]]);
        assert_eq!(selected(&paths, "a/b:single").unwrap(), [paths[8]]);
        let missing = |wanted| selected(&paths, wanted).unwrap_err();
        assert_eq!(missing("a/b:train"), "single configuration with the split `train`; name one of de, en");
        assert_eq!(
            missing("a/b:L32"),
            "split `L32`; its splits are `L64_paraphrased`, `L64`, `single`, `test`, `train` of `de`, `train` of `en`"
        );
        assert!(missing("a/b/fr:train").starts_with("split `train` of `fr`; its splits are "));
        assert_eq!(
            selected(&paths[..2], "a/b:L64").unwrap_err(),
            "complete split `L64`: there are 1 of 2 Parquet files"
        );
        assert_eq!(selected(&["README.md"], "a/b:x").unwrap_err(), "Parquet files");
        let many: Vec<String> = (10..40).map(|number| format!("{number}x.parquet")).collect();
        let fault = selected(&many.iter().map(String::as_str).collect::<Vec<_>>(), "a/b:x").unwrap_err();
        assert!(fault.ends_with("`28x`, `29x`, 10 more"), "{fault}");
    }
}
