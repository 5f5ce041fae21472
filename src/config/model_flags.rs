//! Models that the command line names, beside those of the settings.

use super::sections::{AdapterSettings, DEMO, DEMO_REFERENCE, GGUF, ModelSettings, ModelSource, Settings};
use super::{ConfigError, Dtype, LayersChoice, SettingFault, rules};
use std::path::{Path, PathBuf};

/// Flags about models. A model is named by the id of a configured one, by a directory or a file in GGUF, or by a repository on
/// the Hub or such a file of it, perhaps with a revision: `EleutherAI/pythia-160m@step1000`. Behind a colon it may name an adapter of the model, as in `demo:tuned`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelFlags {
    pub models: Vec<String>,
    pub reference: Option<String>,
    pub dtype: Option<Dtype>,
    pub layers: Option<LayersChoice>,
    /// `--adapter`, each `NAME=DIRECTORY`, or a directory whose last part is the name.
    pub adapters: Vec<String>,
}

impl Settings {
    /// The settings with the models that flags name, and the ids of these. The first of them becomes the default model.
    ///
    /// # Errors
    /// Where a name is that of no model.
    pub fn with_models(mut self, flags: &ModelFlags) -> Result<(Self, Vec<String>), ConfigError> {
        let configured = self.ids();
        let name = |settings: &mut Self, flag: &str, name: &str| {
            settings.name_model(name, &configured).map_err(|problem| fault(flag, problem))
        };
        let adapters = adapters(&flags.adapters).map_err(|problem| fault("--adapter", problem))?;
        let (mut ids, mut named) = (Vec::new(), Vec::new());
        for model in &flags.models {
            let (model, adapter) = self.split(model, &adapters);
            let base = name(&mut self, "--model", model)?;
            let id = adapter.map_or(base.clone(), |adapter| format!("{base}:{adapter}"));
            if !ids.contains(&id) {
                ids.push(id);
            }
            if !named.contains(&base) {
                named.push(base);
            }
        }
        if let Some(id) = ids.first() {
            self.engine.default_model = Some(id.clone());
        }
        if named.is_empty() {
            named.extend(self.default_model().map(str::to_owned));
        }
        let has_variant =
            flags.reference.is_some() || flags.dtype.is_some() || flags.layers.is_some() || !adapters.is_empty();
        if named.is_empty() && has_variant {
            let problem = "is needed: --reference, --dtype, --layers and --adapter are of the models that it names, and \
                           there is no default model";
            return Err(fault("--model", problem.to_owned()));
        }
        for (base, adapter) in named.iter().flat_map(|base| adapters.iter().map(move |adapter| (base, adapter))) {
            if self.adapters_of(base).any(|known| known.name == adapter.name) {
                return Err(fault("--adapter", format!("`{base}` has an adapter `{}` already", adapter.name)));
            }
            self.named_adapters.push((base.clone(), adapter.clone()));
        }
        if let Some(reference) = &flags.reference {
            let (model, adapter) = self.split(reference, &adapters);
            let base = name(&mut self, "--reference", model)?;
            let reference = adapter.map_or(base.clone(), |adapter| format!("{base}:{adapter}"));
            // A model under an adapter has its base as reference without being told.
            let is_told = |id: &&String| **id != base || adapter.is_some() || ids.is_empty() || ids.contains(id);
            let told: Vec<String> = named.iter().filter(is_told).cloned().collect();
            self.refer(&told, &reference).map_err(|problem| fault("--reference", problem))?;
        }
        // The embedded models are part of the program only while no other model is configured.
        let is_embedded = |id: &&String| configured.contains(id) && !self.models.iter().any(|model| model.id == **id);
        if !self.models.is_empty()
            && let Some(id) = named.iter().find(is_embedded)
        {
            return Err(fault(
                "--model",
                format!("`{id}` is part of the program, and served only without other models"),
            ));
        }
        if let Some(dtype) = flags.dtype {
            match self.models.is_empty() {
                true => self.engine.dtype = dtype,
                false => self.models.iter_mut().filter(|model| named.contains(&model.id)).for_each(|m| m.dtype = dtype),
            }
        }
        if let Some(layers) = flags.layers {
            if self.models.is_empty() {
                return Err(fault("--layers", format!("`{DEMO}` is part of the program, and so are its layers")));
            }
            self.models.iter_mut().filter(|model| named.contains(&model.id)).for_each(|model| model.layers = layers);
        }
        Ok((self, ids))
    }

    /// The settings with a control model, which is named as `--model` names one, and its id.
    ///
    /// # Errors
    /// Where the name is that of no model, or where the model asked about would be none any more.
    pub fn with_control(mut self, control: &str) -> Result<(Self, String), ConfigError> {
        let (configured, embedded) = (self.ids(), self.models.is_empty());
        let (model, adapter) = self.split(control, &[]);
        let base = self.name_model(model, &configured).map_err(|problem| fault("--control", problem))?;
        if embedded && !self.models.is_empty() {
            let problem = format!("`{DEMO}` is part of the program, and served only without other models");
            return Err(fault("--control", problem));
        }
        let id = adapter.map_or(base.clone(), |adapter| format!("{base}:{adapter}"));
        Ok((self, id))
    }

    /// The adapters of a model: those of its settings, then those that flags name.
    pub fn adapters_of(&self, id: &str) -> impl Iterator<Item = &AdapterSettings> {
        let configured = self.models.iter().filter(move |model| model.id == id).flat_map(|model| &model.adapters);
        let named = self.named_adapters.iter().filter(move |(model, _)| model == id).map(|(_, adapter)| adapter);
        configured.chain(named)
    }

    /// The name of a model, and that of the adapter behind it, where there is such an adapter.
    fn split<'n>(&self, name: &'n str, adapters: &[AdapterSettings]) -> (&'n str, Option<&'n str>) {
        match name.rsplit_once(':') {
            Some((base, adapter)) if !Path::new(name).is_dir() => {
                let mut known = adapters.iter().chain(self.adapters_of(base));
                if known.any(|known| known.name == adapter) { (base, Some(adapter)) } else { (name, None) }
            }
            _ => (name, None),
        }
    }

    fn ids(&self) -> Vec<String> {
        match self.models.as_slice() {
            [] => [DEMO, DEMO_REFERENCE].map(str::to_owned).into(),
            models => models.iter().map(|model| model.id.clone()).collect(),
        }
    }

    /// The id of the model of this name, which is added where it is not configured.
    fn name_model(&mut self, name: &str, configured: &[String]) -> Result<String, String> {
        if configured.iter().any(|id| id == name) {
            return Ok(name.to_owned());
        }
        let (source, revision) = match name.rsplit_once('@') {
            Some((source, revision)) if !Path::new(name).exists() => (source, Some(revision)),
            _ => (name, None),
        };
        let path = Path::new(source);
        if source.is_empty()
            || revision.is_some_and(|revision| revision.trim().is_empty())
            || !(path.is_dir() || path.is_file() && source.ends_with(GGUF) || source.contains('/'))
        {
            let configured = configured.join(", ");
            return Err(format!(
                "`{name}` is neither a configured model ({configured}), nor a directory, nor a file in GGUF, nor a repository on the \
                 Hub as in `EleutherAI/pythia-160m`"
            ));
        }
        let revision = revision.map(str::to_owned);
        let on_disk = |path: &Path| path.canonicalize().ok();
        let is_same = |model: &&ModelSettings| match (on_disk(path), on_disk(&model.source.path)) {
            _ if model.served.is_some() => false,
            (Some(one), Some(other)) => one == other,
            (None, None) => model.source.text == source && branch(&model.revision) == branch(&revision),
            _ => false,
        };
        let known = self.models.iter().find(is_same);
        if let Some(model) = known {
            return Ok(model.id.clone());
        }
        let id = self.free_id(path);
        let source = ModelSource { text: source.to_owned(), path: path.to_owned() };
        self.models.push(ModelSettings { id: id.clone(), source, revision, ..ModelSettings::default() });
        Ok(id)
    }

    /// An id for the model of this directory, file or repository: its last part, with a number where that is taken.
    fn free_id(&self, path: &Path) -> String {
        let absolute = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let name = absolute.file_name().unwrap_or_default().to_string_lossy();
        // The id of a file of a repository is the name of the file.
        let name = name.strip_suffix(GGUF).map_or(&*name, |name| name.rsplit(':').next().unwrap_or(name));
        let legal = |character: char| {
            if character.is_ascii_alphanumeric() || "._-".contains(character) { character } else { '-' }
        };
        let name: String = name.chars().map(legal).take(rules::LONGEST_ID - 4).collect();
        let name = if rules::is_id(&name) { name } else { "model".to_owned() };
        let is_free = |id: &String| !self.models.iter().any(|model| model.id == *id);
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        std::iter::once(name.clone()).chain(numbered).find(is_free).unwrap_or(name)
    }

    /// Makes a model the reference of others.
    fn refer(&mut self, ids: &[String], reference: &str) -> Result<(), String> {
        for id in ids {
            if id == reference {
                return Err(format!("`{id}` cannot be its own reference"));
            }
            match self.models.iter_mut().find(|model| model.id == *id) {
                Some(model) => model.reference = Some(reference.to_owned()),
                None if id == DEMO && reference == DEMO_REFERENCE => {}
                None => return Err(format!("`{id}` is part of the program, as is its reference")),
            }
        }
        Ok(())
    }
}

fn adapters(flags: &[String]) -> Result<Vec<AdapterSettings>, String> {
    let adapter = |flag: &String| {
        let (name, source) = match flag.split_once('=') {
            Some((name, source)) if !Path::new(flag).is_dir() => (name.to_owned(), source),
            _ => {
                let name = Path::new(flag).file_name().unwrap_or_default();
                (name.to_string_lossy().into_owned(), flag.as_str())
            }
        };
        if !rules::is_id(&name) {
            return Err(format!("`{name}` is no name: {}", rules::ID_RULE));
        }
        if !Path::new(source).is_dir() {
            return Err(format!("`{source}` is not a directory"));
        }
        Ok(AdapterSettings { name, source: PathBuf::from(source) })
    };
    flags.iter().map(adapter).collect()
}

/// The branch, tag or commit that is meant.
fn branch(revision: &Option<String>) -> &str {
    revision.as_deref().unwrap_or("main")
}

fn fault(flag: &str, problem: String) -> ConfigError {
    ConfigError::Invalid(vec![SettingFault { key: flag.to_owned(), problem, origin: None }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Overrides;

    fn settings(file: &str) -> Settings {
        Settings::from_sources(Some((Path::new("x.toml"), file)), [], &Overrides::default()).unwrap()
    }

    fn flags(models: &[&str]) -> ModelFlags {
        ModelFlags { models: models.iter().map(|name| (*name).to_owned()).collect(), ..ModelFlags::default() }
    }

    const TWO: &str = "[[models]]\nid = \"a\"\nsource = \"x/a\"\n[[models]]\nid = \"b\"\nsource = \"x/b\"\n";

    #[test]
    fn a_model_is_an_id_a_directory_or_a_repository() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("my model@2");
        std::fs::create_dir(&path).unwrap();
        let path = path.to_str().unwrap();
        let (settings, ids) =
            settings(TWO).with_models(&flags(&["b", path, "EleutherAI/b@step1", "EleutherAI/b", path])).unwrap();
        assert_eq!(ids, ["b", "my-model-2", "b-2", "b-3"]);
        assert_eq!((settings.default_model(), settings.models.len()), (Some("b"), 5));
        let added = &settings.models[3];
        assert_eq!((added.source.text.as_str(), added.revision.as_deref()), ("EleutherAI/b", Some("step1")));
        assert_eq!(settings.models[2].source.text, path);
    }

    #[test]
    fn a_file_in_gguf_is_a_model_of_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tiny.Q4_K_M.gguf");
        std::fs::write(&path, "GGUF").unwrap();
        let path = path.to_str().unwrap();
        let (settings, ids) = Settings::default()
            .with_models(&flags(&[path, "hub:a/b-GGUF:b-Q8_0.gguf@v1", path, "hub:a/b-GGUF:b-Q8_0.gguf"]))
            .unwrap();
        assert_eq!(ids, ["tiny.Q4_K_M", "b-Q8_0", "b-Q8_0-2"]);
        let fetched = &settings.models[1];
        assert_eq!(
            (fetched.source.text.as_str(), fetched.revision.as_deref()),
            ("hub:a/b-GGUF:b-Q8_0.gguf", Some("v1"))
        );
        assert!(settings.models.iter().all(|model| model.source.is_gguf()));
        let absent = Settings::default().with_models(&flags(&["absent.gguf"])).unwrap_err().to_string();
        assert!(absent.contains("nor a file in GGUF"), "{absent}");
    }

    #[test]
    fn the_reference_and_the_dtype_are_of_the_models_named() {
        let flags = ModelFlags { reference: Some("x/small".into()), dtype: Some(Dtype::Bf16), ..flags(&["x/large"]) };
        let (settings, ids) = Settings::default().with_models(&flags).unwrap();
        assert_eq!(ids, ["large"]);
        let [large, small] = &settings.models[..] else { panic!("{settings:?}") };
        assert_eq!((large.reference.as_deref(), large.dtype), (Some("small"), Dtype::Bf16));
        assert_eq!((small.reference.as_deref(), small.dtype), (None, Dtype::Auto));
        let flags = ModelFlags { layers: Some(LayersChoice::Stream), ..flags };
        let (settings, _) = Settings::default().with_models(&flags).unwrap();
        let layers: Vec<LayersChoice> = settings.models.iter().map(|model| model.layers).collect();
        assert_eq!(layers, [LayersChoice::Stream, LayersChoice::Auto]);
        let demo = ModelFlags { layers: flags.layers, ..ModelFlags::default() };
        let said = Settings::default().with_models(&demo).unwrap_err().to_string();
        assert!(said.contains("`--layers`: `demo` is part of the program"), "{said}");
        let only = ModelFlags { dtype: Some(Dtype::F32), ..ModelFlags::default() };
        assert_eq!(Settings::default().with_models(&only).unwrap().0.engine.dtype, Dtype::F32);
    }

    #[test]
    fn adapters_are_of_the_models_named_and_follow_a_colon() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tuned");
        std::fs::create_dir(&path).unwrap();
        let path = path.to_str().unwrap().to_owned();
        let with = |models: &[&str], adapters: &[&str]| {
            let adapters = adapters.iter().map(|adapter| (*adapter).to_owned()).collect();
            settings(TWO).with_models(&ModelFlags { adapters, ..flags(models) })
        };
        let (both, ids) = with(&["a:tuned", "a"], &[&path]).unwrap();
        assert_eq!((ids, both.default_model()), (vec!["a:tuned".to_owned(), "a".to_owned()], Some("a:tuned")));
        let names: Vec<&str> = both.adapters_of("a").map(|adapter| adapter.name.as_str()).collect();
        assert_eq!((names, both.adapters_of("b").count()), (vec!["tuned"], 0));
        let (other, ids) = with(&["b:other"], &[&format!("other={path}")]).unwrap();
        assert_eq!((ids[0].as_str(), other.adapters_of("b").count()), ("b:other", 1));
        // Its base is the reference of a fine-tune already, and may have the fine-tune as its own.
        let against = |models: &[&str], reference: &str| {
            let flags = ModelFlags { reference: Some(reference.into()), adapters: vec![path.clone()], ..flags(models) };
            settings(TWO).with_models(&flags).map(|(settings, _)| settings.models[0].reference.clone())
        };
        assert_eq!(against(&["a:tuned"], "a").unwrap(), None);
        assert_eq!(against(&["a"], "a:tuned").unwrap().as_deref(), Some("a:tuned"));
        assert!(against(&["a"], "a").unwrap_err().to_string().contains("`a` cannot be its own reference"));
        let said = |models: &[&str], adapters: &[&str]| with(models, adapters).unwrap_err().to_string();
        assert!(said(&["a:absent"], &[&path]).contains("`a:absent` is neither a configured model"));
        assert!(said(&["a"], &["x=absent"]).contains("`--adapter`: `absent` is not a directory"));
        assert!(said(&["a"], &[&format!("x y={path}")]).contains("`x y` is no name"));
        assert!(said(&["a"], &[&path, &path]).contains("`a` has an adapter `tuned` already"));
        assert!(said(&[], &[&path]).contains("`--model`: is needed"));
    }

    #[test]
    fn what_is_no_model_is_refused() {
        let fault = |flags: &ModelFlags| Settings::default().with_models(flags).unwrap_err().to_string();
        for name in ["pythia-160m", "", "@main", "a@"] {
            let said = fault(&flags(&[name]));
            assert!(said.contains(&format!("`{name}` is neither a configured model (demo, demo-reference)")), "{said}");
        }
        assert!(fault(&flags(&["demo", "x/a"])).contains("`demo` is part of the program"));
        let itself = ModelFlags { reference: Some("x/a".into()), ..flags(&["x/a"]) };
        assert!(fault(&itself).contains("`a` cannot be its own reference"));
        let dtype = ModelFlags { dtype: Some(Dtype::F16), ..ModelFlags::default() };
        let said = settings(TWO).with_models(&dtype).unwrap_err().to_string();
        assert!(said.contains("`--model`: is needed"), "{said}");
        let embedded = ModelFlags { reference: Some("x/a".into()), ..flags(&["demo"]) };
        assert!(fault(&embedded).contains("`demo` is part of the program, as is its reference"));
    }
}
