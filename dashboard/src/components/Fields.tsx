import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import type { Overflow } from "../api/schemas";
import { type Range, numberWithin } from "../pure/methods";

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

export function SelectField(props: FieldProps & { value: string; choices: Choice[]; onChange(value: string): void }) {
  const id = useId();
  return (
    <p class="field">
      <label for={id}>{props.label}</label>
      <select id={id} value={props.value} aria-describedby={props.hint ? `${id}-hint` : undefined}
        onChange={(event) => props.onChange(event.currentTarget.value)}>
        {props.choices.map((choice) => <option key={choice.value} value={choice.value} selected={choice.value === props.value}>{choice.label}</option>)}
      </select>
      {props.hint && <small id={`${id}-hint`}>{props.hint}</small>}
    </p>
  );
}

const OVERFLOWS: Choice[] = [{ value: "error", label: "do not score" }, { value: "window", label: "read in windows" }, { value: "truncate", label: "cut off" }];

export function OverflowField({ value, onChange }: { value: Overflow; onChange(value: Overflow): void }) {
  return <SelectField label="Texts beyond the context" value={value} choices={OVERFLOWS} onChange={(chosen) => onChange(chosen as Overflow)} />;
}

export function CheckField(props: { label: ComponentChildren; checked: boolean; onChange(checked: boolean): void; disabled?: boolean }) {
  return (
    <label class="check">
      <input type="checkbox" checked={props.checked} disabled={props.disabled} onChange={(event) => props.onChange(event.currentTarget.checked)} />
      <span>{props.label}</span>
    </label>
  );
}

interface SliderProps {
  label: string;
  value: number;
  minimum: number;
  maximum: number;
  step: number;
  /** The values that the service takes, which may be beyond the slider. */
  range: Range;
  onInput(value: number): void;
}

/** A slider with a field beside it, which takes numbers beyond the slider and between its steps. */
export function SliderField({ label, value, minimum, maximum, step, range, onInput }: SliderProps) {
  const id = useId();
  // Until the field is left it shows what was typed, as 0.0 on the way to 0.05.
  const [draft, setDraft] = useState<string | null>(null);
  return (
    <div class="field slider">
      <label for={id}>{label}</label>
      <input id={id} type="range" min={minimum} max={maximum} step={step} value={value} onInput={(event) => onInput(Number(event.currentTarget.value))} />
      <input type="number" aria-label={`${label}, exact`} step="any" value={draft ?? value} aria-invalid={draft !== null && numberWithin(draft, range) === null}
        onInput={(event) => {
          const text = event.currentTarget.value;
          setDraft(text);
          const number = numberWithin(text, range);
          if (number !== null) onInput(number);
        }}
        onBlur={() => setDraft(null)} />
    </div>
  );
}
