import { useMemo, useState } from "preact/hooks";
import { catalogue as getCatalogue, models as getModels } from "../api/calls";
import type { Catalogue, ModelEntry, Overflow } from "../api/schemas";
import { owner } from "../audit/draft";
import { OverflowField, SelectField, SliderField } from "../components/Fields";
import { Await, FailureNotice } from "../components/Notices";
import { ScoreResult } from "../components/ScoreResult";
import { useLoad } from "../load";
import { ALPHA_SLIDER, type Decay } from "../pure/decay";
import { count } from "../pure/format";
import { decaysOf, defaultK, rangeOf, runsAlone, takesK } from "../pure/methods";
import type { Settings } from "../score/request";
import { DETAILED, useScore } from "../score/useScore";

const EXAMPLE = "The brass clock struck nine in Fallowfield.";

export function ScorePage() {
  const { data, failure } = useLoad(async (signal) => ({ ...(await getModels(signal)), catalogue: await getCatalogue(signal) }), []);
  return <Await data={data} failure={failure}>{({ models, catalogue }) => <ScoreForm models={models} catalogue={catalogue} />}</Await>;
}

function ScoreForm({ models, catalogue }: { models: ModelEntry[]; catalogue: Catalogue }) {
  const causal = models.filter((model) => model.kind !== "masked");
  const [model, setModel] = useState(causal.find((entry) => entry.default)?.id ?? causal[0]?.id ?? "");
  const [text, setText] = useState("");
  const [overflow, setOverflow] = useState<Overflow>("window");
  const [wished, setSettings] = useState<Settings>({ method: "min_k_plus_plus", decay: "linear", alpha: ALPHA_SLIDER.linear.start, k: 0.2 });
  const hasReference = owner(models, model)?.reference != null;
  const methods = useMemo(() => catalogue.methods.filter((method) => runsAlone(method, hasReference)), [catalogue, hasReference]);
  const entry = methods.find((method) => method.name === wished.method) ?? methods[0];
  const decays = decaysOf(entry);
  // The weights that were chosen stay for the next method that takes them.
  const settings: Settings = { ...wished, method: entry?.name ?? wished.method, decay: wished.decay && decays.includes(wished.decay) ? wished.decay : null };
  const { scored, failure, pending, asking, begin } = useScore(settings, entry);
  const change = (part: Partial<Settings>) => setSettings((before) => ({ ...before, ...part }));
  const adapters = causal.flatMap((entry) => entry.adapters ?? []);

  if (causal.length === 0) return <p>No model that scores texts is configured.</p>;
  const start = () => begin({ text, model, overflow });
  const slider = settings.decay && ALPHA_SLIDER[settings.decay];
  return (
    <>
      <form onSubmit={(event) => {
        event.preventDefault();
        start();
      }}>
        <div class="field">
          <label for="text">Text</label>
          <textarea id="text" rows={4} value={text} spellcheck={false} onInput={(event) => setText(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && text !== "") start();
            }} />
          <small>
            {text.length > DETAILED ? `Tokens are shown of texts up to ${count(DETAILED)} characters; this one gets its score alone. ` : ""}
            Ctrl+Enter scores it. <button type="button" class="plain" onClick={() => setText(EXAMPLE)}>Take an example</button>
          </small>
        </div>
        <div class="row">
          <SelectField label="Model" value={model} onChange={setModel}
            choices={[...causal, ...adapters].map(({ id }) => ({ value: id, label: id }))} />
          <OverflowField value={overflow} onChange={setOverflow} />
          <p class="field"><button type="submit" class="primary" disabled={text === ""}>Score the text</button></p>
        </div>
      </form>
      <section aria-labelledby="method-title">
        <h2 id="method-title">Method and weights</h2>
        <div class="row">
          <SelectField label="Method" value={settings.method} hint={entry?.formula} choices={methods.map(({ name }) => ({ value: name, label: name }))}
            onChange={(method) => {
              const next = methods.find(({ name }) => name === method);
              change({ method, k: next && takesK(next) && entry && takesK(entry) ? settings.k : defaultK(next) });
            }} />
          {decays.length > 0 && (
            <SelectField label="Weights" value={settings.decay ?? ""} hint={catalogue.decays.find(({ name }) => name === settings.decay)?.formula}
              choices={[{ value: "", label: "none" }, ...decays.map((decay) => ({ value: decay, label: decay }))]}
              onChange={(value) => change(value === "" ? { decay: null } : { decay: value as Decay, alpha: ALPHA_SLIDER[value as Decay].start })} />
          )}
          {slider && (
            <SliderField label="alpha" value={settings.alpha} minimum={slider.minimum} maximum={slider.maximum} step={slider.step}
              range={rangeOf(catalogue.decays.find(({ name }) => name === settings.decay)?.parameters, "alpha")} onInput={(alpha) => change({ alpha })} />
          )}
          {entry && takesK(entry) && (
            <SliderField label="k" value={settings.k} minimum={0.01} maximum={1} step={0.01} range={rangeOf(entry.parameters, "k")} onInput={(k) => change({ k })} />
          )}
        </div>
      </section>
      <FailureNotice failure={failure} />
      {scored ? <ScoreResult scored={scored} settings={settings} pending={pending} asking={asking} /> : pending && <p role="status">The service reads the text …</p>}
    </>
  );
}
