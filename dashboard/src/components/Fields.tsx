import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface FieldProps {
  label: string;
  hint?: ComponentChildren;
}

export function TextField(props: FieldProps & { value: string; onInput(value: string): void; secret?: boolean; placeholder?: string }) {
  const id = useId();
  const attributes = {
    id,
    value: props.value,
    placeholder: props.placeholder,
    autocomplete: "off",
    spellcheck: false,
    "aria-describedby": props.hint ? `${id}-hint` : undefined,
    onInput: (event: { currentTarget: HTMLInputElement }) => props.onInput(event.currentTarget.value),
  };
  return (
    <p class="field">
      <label for={id}>{props.label}</label>
      {props.secret ? <input type="password" {...attributes} /> : <input type="text" {...attributes} />}
      {props.hint && <small id={`${id}-hint`}>{props.hint}</small>}
    </p>
  );
}

export interface Choice {
  value: string;
  label: string;
}

export function SelectField(props: FieldProps & { value: string; choices: Choice[]; onChange(value: string): void; disabled?: boolean }) {
  const id = useId();
  return (
    <p class="field">
      <label for={id}>{props.label}</label>
      <select id={id} value={props.value} disabled={props.disabled} aria-describedby={props.hint ? `${id}-hint` : undefined}
        onChange={(event) => props.onChange(event.currentTarget.value)}>
        {props.choices.map((choice) => <option key={choice.value} value={choice.value} selected={choice.value === props.value}>{choice.label}</option>)}
      </select>
      {props.hint && <small id={`${id}-hint`}>{props.hint}</small>}
    </p>
  );
}

export function CheckField(props: { label: ComponentChildren; checked: boolean; onChange(checked: boolean): void; disabled?: boolean; title?: string }) {
  return (
    <label class="check" title={props.title}>
      <input type="checkbox" checked={props.checked} disabled={props.disabled} onChange={(event) => props.onChange(event.currentTarget.checked)} />
      <span>{props.label}</span>
    </label>
  );
}

/** A slider with a field beside it, which takes numbers beyond the slider and between its steps. */
export function SliderField(props: FieldProps & { value: number; minimum: number; maximum: number; step: number; onInput(value: number): void }) {
  const id = useId();
  const take = (text: string) => {
    const value = Number(text);
    if (text.trim() !== "" && Number.isFinite(value)) props.onInput(value);
  };
  return (
    <div class="field slider">
      <label for={id}>{props.label}</label>
      <input id={id} type="range" min={props.minimum} max={props.maximum} step={props.step} value={props.value}
        onInput={(event) => take(event.currentTarget.value)} />
      <input type="number" aria-label={`${props.label}, exact`} step="any" value={props.value} onInput={(event) => take(event.currentTarget.value)} />
      {props.hint && <small>{props.hint}</small>}
    </div>
  );
}
