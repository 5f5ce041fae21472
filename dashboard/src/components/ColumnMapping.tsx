import { type Mapping, defaultColumn, isPaired, labelCounts } from "../pure/columns";
import { count } from "../pure/format";
import type { Table } from "../pure/table";
import { beginning, visible } from "../pure/text";
import { SelectField, TextField } from "./Fields";

interface Props {
  table: Table | null;
  mapping: Mapping;
  onChange(mapping: Mapping): void;
}

const SHOWN = 5;

/** The columns of the text, the label and the id, with the first rows as they would be read. */
export function ColumnMapping({ table, mapping, onChange }: Props) {
  if (table === null) {
    return (
      <>
        <p class="faint">The page cannot look into this kind of file. Name the columns where they are not called text, label and id.</p>
        <div class="row">
          <TextField label="Text column" value={mapping.text} placeholder="text" onInput={(text) => onChange({ ...mapping, text })} />
          <TextField label="Label column" value={mapping.label} placeholder="label" onInput={(label) => onChange({ ...mapping, label })} />
          <TextField label="Id column" value={mapping.id} placeholder="id" onInput={(id) => onChange({ ...mapping, id })} />
        </div>
      </>
    );
  }
  if (table.columns.length === 0) return <p class="notice">No record could be read from the beginning of the file. Upload it, and the service names its fault.</p>;
  const columns = table.columns.map((column) => ({ value: column, label: visible(beginning(column, 60)) }));
  const choices = (role: keyof Mapping) => (defaultColumn(role, table.columns) === undefined ? [{ value: "", label: "none" }, ...columns] : columns);
  const labels = mapping.label ? labelCounts(table, mapping.label) : null;
  const roles: [string, string][] = [["Text", mapping.text], ["Label", mapping.label], ["Id", mapping.id]];
  return (
    <>
      {isPaired(table.columns) && mapping.text === "" && <p class="faint">Rows with <code>member</code> and <code>nonmember</code> are a text of each class.</p>}
      <div class="row">
        <SelectField label="Text column" value={mapping.text} choices={choices("text")} onChange={(text) => onChange({ ...mapping, text })} />
        <SelectField label="Label column" value={mapping.label} choices={choices("label")} onChange={(label) => onChange({ ...mapping, label })}
          hint={labels && `First ${count(table.rows.length)} rows: ${labels.members} members, ${labels.nonMembers} non-members${labels.others ? `, ${labels.others} of another value` : ""}`} />
        <SelectField label="Id column" value={mapping.id} choices={choices("id")} onChange={(id) => onChange({ ...mapping, id })} />
      </div>
      <div class="wide" tabIndex={0} role="region" aria-label="Preview of the rows">
        <table>
          <caption>The first rows as they would be read</caption>
          <thead>
            <tr>{roles.map(([role, column]) => column && <th key={role} scope="col">{role}: <code>{visible(beginning(column, 60))}</code></th>)}</tr>
          </thead>
          <tbody>
            {table.rows.slice(0, SHOWN).map((row, index) => (
              <tr key={index}>
                {roles.map(([role, column]) => column && <td key={role} class="text-cell">{visible(beginning(row[table.columns.indexOf(column)] ?? "", 200))}</td>)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
