import { useId } from "preact/hooks";
import type { Catalogue } from "../api/schemas";
import { DECAYS } from "../pure/decay";
import { type MethodChoice, runsAlone } from "../pure/methods";
import { CheckField, SelectField, TextField } from "./Fields";

interface Props {
  catalogue: Catalogue;
  hasReference: boolean;
  choice: MethodChoice;
  onChange(choice: MethodChoice): void;
}

export function MethodChooser({ catalogue, hasReference, choice, onChange }: Props) {
  const id = useId();
  const change = (part: Partial<MethodChoice>) => onChange({ ...choice, ...part });
  const toggle = <T,>(list: T[], value: T, on: boolean) => (on ? [...list, value] : list.filter((other) => other !== value));
  const methods = catalogue.methods.filter((method) => runsAlone(method, hasReference));
  const preset = catalogue.presets.find((entry) => entry.name === choice.preset);
  const length = preset?.parameters.find((parameter) => parameter.name === "length");
  return (
    <>
      <fieldset>
        <legend>Methods</legend>
        {methods.map((method) => (
          <CheckField key={method.name} label={<code>{method.name}</code>} checked={choice.names.includes(method.name)}
            onChange={(on) => change({ names: toggle(choice.names, method.name, on) })} />
        ))}
        <TextField label="k of those that select tokens" value={choice.k} placeholder="default of each" hint="A share in (0, 1]; several, separated by commas, are methods of their own."
          onInput={(k) => change({ k })} />
        <details>
          <summary>The methods in a sentence each</summary>
          <dl class="facts">{methods.map(({ name, summary }) => <div key={name}><dt><code>{name}</code></dt><dd>{summary}</dd></div>)}</dl>
        </details>
      </fieldset>
      <fieldset>
        <legend>Weights by position</legend>
        <CheckField label="without weights" checked={choice.unweighted} onChange={(unweighted) => change({ unweighted })} />
        {DECAYS.map((decay) => (
          <CheckField key={decay} label={decay} checked={choice.decays.includes(decay)} onChange={(on) => change({ decays: toggle(choice.decays, decay, on) })} />
        ))}
        <div class="row">
          {DECAYS.filter((decay) => choice.decays.includes(decay)).map((decay) => (
            <TextField key={decay} label={`alpha, ${decay}`} value={choice.alphas[decay]} onInput={(alpha) => change({ alphas: { ...choice.alphas, [decay]: alpha } })} />
          ))}
        </div>
      </fieldset>
      <div class="row">
        <SelectField label="Preset" value={choice.preset} hint={preset?.summary} onChange={(name) => change({ preset: name })}
          choices={[{ value: "", label: "none" }, ...catalogue.presets.map(({ name }) => ({ value: name, label: name }))]} />
        {length && (
          <SelectField label="Words of a text" value={choice.length} onChange={(value) => change({ length: value })}
            choices={(length.values ?? [32, 64, 128]).map((value) => ({ value: String(value), label: String(value) }))} />
        )}
      </div>
      <details>
        <summary>Further methods as JSON</summary>
        <p class="field">
          <label for={id}>JSON array</label>
          <textarea id={id} rows={3} value={choice.more} spellcheck={false} onInput={(event) => change({ more: event.currentTarget.value })}
            placeholder='[{"name":"recall","prefix":["A text outside of the training data."]}]' />
          <small>As <code>methods</code> of a request: methods with prefixes, token counts, adapters, neighbours, and ablations of the weights.</small>
        </p>
      </details>
    </>
  );
}
