//! Options common to the commands that score: the model, the methods, and the start and the end of the scorer.

use super::method_flags::MethodFlags;
use super::{demo_model, progress};
use crate::config::{Dtype, LayersChoice, LogFormat, ModelFlags, Overrides, Settings};
use crate::pool::{Origin, base_id};
use crate::samples::ChatRenderer;
use crate::scorer::{Overflow, Plan, Scorer, ScorerError};
use crate::{app, telemetry};
use anyhow::{Context, Result, anyhow};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lm::chat::ChatTemplate;
use lm::hub::DownloadProgress;
use mia::methods::{Fault, LabelledMethod, Scope, resolve};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use strum::VariantNames;

/// Reads a value that is one of the names of `T`.
pub fn variant<T>() -> impl TypedValueParser<Value = T>
where
    T: VariantNames + FromStr<Err = strum::ParseError> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(T::VARIANTS).try_map(|name| T::from_str(&name))
}

/// The settings with the models that flags name, for a command that reads `files` and logs warnings only.
///
/// # Errors
/// Where the settings or the models cannot be read, or no model is named for these files.
pub fn load_settings(flags: &ModelFlags, config: Option<&Path>, files: &[&Path]) -> Result<NamedSettings> {
    let settings = Settings::load(config, &Overrides::default())?;
    demo_model::check_model_of_files(&settings, !flags.models.is_empty(), files)?;
    telemetry::init_tracing(settings.log.format == LogFormat::Json, "warn")?;
    Ok(settings.with_models(flags)?)
}

/// Options that go with `--model`.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Model")]
pub struct VariantArgs {
    /// Reference model of the models named, of the same three kinds.
    #[arg(long, value_name = "MODEL")]
    pub reference: Option<String>,
    /// Data type that the models named compute in.
    #[arg(long, value_name = "TYPE", value_parser = variant::<Dtype>())]
    pub dtype: Option<Dtype>,
    /// Where the layers of the models named are while they run: in memory, or on disk, from which every forward pass reads them.
    #[arg(long, value_name = "PLACE", value_parser = variant::<LayersChoice>())]
    pub layers: Option<LayersChoice>,
    /// LoRA adapter of the models named, as PEFT saves it: a directory, or a name and a directory. `--model MODEL:NAME` scores
    /// under it, and the method `fsd` compares with it. May be given several times.
    #[arg(long, value_name = "[NAME=]DIRECTORY")]
    pub adapter: Vec<String>,
}

/// Settings, and the ids of the models that flags name.
pub type NamedSettings = (Settings, Vec<String>);

impl VariantArgs {
    /// The models named, with what goes with them.
    pub fn with(self, models: Vec<String>) -> ModelFlags {
        ModelFlags { models, reference: self.reference, dtype: self.dtype, layers: self.layers, adapters: self.adapter }
    }
}

/// Options common to `score` and `audit`.
#[derive(Args)]
#[command(next_help_heading = "Model")]
pub struct ScoringArgs {
    /// Model to score with: the id of a configured model, a directory, or a repository on the Hub as in
    /// `EleutherAI/pythia-160m@REVISION`; by default the default model of the settings.
    #[arg(long)]
    pub model: Option<String>,
    #[command(flatten)]
    pub variant: VariantArgs,
    #[command(flatten)]
    pub methods: MethodFlags,
    /// Handling of texts longer than the model's context.
    #[arg(long, help_heading = "Model", default_value_t, value_parser = variant::<Overflow>())]
    pub overflow: Overflow,
}

impl ScoringArgs {
    /// Starts a scorer for these arguments and loads the model. Other models are opened by the methods
    /// that name them. `audit` and `neighbors` are of the texts, as in [`Scope`]; `defaults` are the methods where none are named.
    pub async fn start(
        &self,
        settings: &NamedSettings,
        audit: bool,
        neighbors: bool,
        defaults: impl FnOnce(&Scope) -> Vec<LabelledMethod>,
    ) -> Result<(Scorer, Plan)> {
        let (settings, named) = settings;
        let scorer = app::make_scorer(settings, app::hub())?;
        let (pool, ids) = (scorer.pool(), scorer.pool().ids());
        let model = pool.find(named.first().map(String::as_str))?;
        let methods = self.methods(&scorer.scope(&ids, Some(&model), audit, neighbors), defaults)?;
        let loaded = progress::for_models(pool, pool.load(&model.id)).await;
        loaded.with_context(|| format!("model `{}`", model.id))?;
        demo_model::announce(settings, &model.id);
        let (model, methods, overflow) = (model.id.clone(), methods.into(), self.overflow);
        let plan = Plan { model, methods, overflow, tokens: false, splits: Arc::new([]) };
        Ok((scorer, plan))
    }

    /// The settings with the models that these arguments name, for a command that reads `files`.
    pub fn settings(&self, config: Option<&Path>, files: &[&Path]) -> Result<NamedSettings> {
        load_settings(&self.variant.clone().with(self.model.iter().cloned().collect()), config, files)
    }

    fn methods(
        &self,
        scope: &Scope,
        defaults: impl FnOnce(&Scope) -> Vec<LabelledMethod>,
    ) -> Result<Vec<LabelledMethod>> {
        let Some(requests) = self.methods.requests()? else { return Ok(defaults(scope)) };
        resolve(&requests, scope).map_err(|faults| methods_error(&faults))
    }
}

/// Renders conversations by the chat template of the model that is named, or of the default one.
pub fn chat_renderer((settings, named): &NamedSettings) -> ChatRenderer {
    let id = named.first().map(String::as_str).or(settings.default_model()).map(str::to_owned);
    let (settings, limit) = (settings.clone(), settings.limits.text.as_u64());
    ChatRenderer::new(limit, move || {
        let id = id.ok_or("there is no default model, whose chat template would render it; name one with --model")?;
        chat_template(&settings, &id).map_err(|error| format!("{error:#}"))
    })
}

fn chat_template(settings: &Settings, id: &str) -> Result<Arc<ChatTemplate>> {
    let model = || format!("model `{id}`");
    let origin = Origin::from_settings(settings, base_id(id)).with_context(model)?;
    let origin = origin.with_context(|| format!("model `{id}` is not configured"))?;
    let template = origin.chat_template(app::hub().as_ref(), &DownloadProgress::default()).with_context(model)?;
    template.with_context(model)
}

/// Ends the engine, which writes what its cache on disk has not written yet.
pub async fn finish(scorer: &Scorer) {
    let engine = scorer.engine().clone();
    // Fails only where the runtime ends, which it does after this.
    let _ = tokio::task::spawn_blocking(move || engine.shutdown(Duration::ZERO)).await;
}

/// An error of the scorer as the command line tells it.
pub fn explained(error: ScorerError) -> anyhow::Error {
    match error {
        ScorerError::Unfit(faults) => methods_error(&faults),
        error => error.into(),
    }
}

fn methods_error(faults: &[Fault]) -> anyhow::Error {
    let faults: Vec<String> = faults.iter().map(|fault| format!("{} {}", fault.pointer, fault.detail)).collect();
    anyhow!("--methods: {}", faults.join("; ").trim_start())
}
