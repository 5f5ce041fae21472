import type { Catalogue, ModelEntry } from "../api/schemas";
import type { Form } from "../audit/useForm";
import { OverflowField, SelectField, TextField } from "./Fields";
import { MethodChooser } from "./MethodChooser";

/** Model, treatment of long texts, name and methods. */
export function ModelFields({ form, models, catalogue }: { form: Form; models: ModelEntry[]; catalogue: Catalogue }) {
  const { draft, change } = form;
  const adapters = models.flatMap((entry) => entry.adapters ?? []);
  return (
    <>
      <div class="row">
        <SelectField label="Model" value={draft.model} onChange={(model) => change({ model })} choices={[...models, ...adapters].map(({ id }) => ({ value: id, label: id }))} />
        <OverflowField value={draft.overflow} onChange={(overflow) => change({ overflow })} />
        <TextField label="Name" value={draft.name} onInput={(name) => change({ name })} hint="For the lists of jobs." />
      </div>
      <MethodChooser catalogue={catalogue} hasReference={form.hasReference} choice={draft.choice} onChange={(choice) => change({ choice })} />
    </>
  );
}
