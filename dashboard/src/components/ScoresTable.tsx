import { useEffect, useMemo, useState } from "preact/hooks";
import { ScoreReader } from "../api/scores";
import type { SampleLine } from "../api/schemas";
import { useLoad } from "../load";
import { count, short } from "../pure/format";
import { visible } from "../pure/text";
import { SelectField } from "./Fields";
import { FailureNotice } from "./Notices";

const PAGE = 25;

interface Props {
  id: string;
  total: number;
  labels: string[];
}

/** One page of an audit's samples at a time, by one method. */
export function ScoresTable({ id, total, labels }: Props) {
  const reader = useMemo(() => new ScoreReader(id), [id]);
  useEffect(() => () => reader.close(), [reader]);
  const [label, setLabel] = useState(labels[0] ?? "");
  const [first, setFirst] = useState(0);
  const [target, setTarget] = useState("");
  const { data: shown, failure } = useLoad(async () => ({ first, rows: await reader.page(first, PAGE) }), [reader, first]);
  const rows = shown?.rows;

  const last = Math.max(0, Math.floor((total - 1) / PAGE) * PAGE);
  const show = (sample: number) => setFirst(Math.max(0, Math.min(last, Math.floor(sample / PAGE) * PAGE)));
  const columns = optionalColumns(rows ?? [], label);
  return (
    <>
      <div class="row">
        <SelectField label="Method" value={label} choices={labels.map((name) => ({ value: name, label: visible(name) }))} onChange={setLabel} />
        <form class="field" onSubmit={(event) => {
          event.preventDefault();
          if (/^\d+$/.test(target.trim())) show(Number(target));
        }}>
          <label for="sample">Go to the sample of index</label>
          <span class="actions">
            <input id="sample" inputMode="numeric" value={target} onInput={(event) => setTarget(event.currentTarget.value)} />
            <button type="submit">Go</button>
          </span>
        </form>
      </div>
      <FailureNotice failure={failure} />
      <div class="wide" tabIndex={0} role="region" aria-label="Scores of the samples">
        <table>
          <thead>
            <tr>
              <th scope="col" class="number-cell">Index</th><th scope="col">Id</th><th scope="col">Label</th>
              <th scope="col" class="number-cell">Tokens</th><th scope="col" class="number-cell">Score</th>
              {columns.map(({ name }) => <th key={name} scope="col" class="number-cell">{name}</th>)}
              <th scope="col">Faults</th>
            </tr>
          </thead>
          <tbody>
            {rows?.map((row) => (
              <tr key={row.index}>
                <td class="number-cell">{row.index}</td>
                <td class="text-cell">{visible(String(row.id ?? row.document ?? ""))}</td>
                <td>{row.label == null ? "\u2013" : row.label === 1 ? "member" : "non-member"}</td>
                <td class="number-cell">{row.scored_tokens}</td>
                <td class="number-cell" title={String(row.scores[label] ?? "")}>{short(row.scores[label])}</td>
                {columns.map(({ name, value }) => <td key={name} class="number-cell">{value(row)}</td>)}
                <td class="text-cell">{row.errors.filter((error) => !error.label || error.label === label).map((error) => error.code).join(", ")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="actions">
        <button type="button" disabled={first === 0} onClick={() => setFirst(first - PAGE)}>Previous</button>
        <span role="status">{shown ? `${count(shown.first + 1)} to ${count(shown.first + shown.rows.length)} of ${count(total)}` : "Loading \u2026"}</span>
        <button type="button" disabled={first >= last} onClick={() => setFirst(first + PAGE)}>Next</button>
      </p>
    </>
  );
}

function optionalColumns(rows: SampleLine[], label: string): { name: string; value(row: SampleLine): string }[] {
  const columns = [
    { name: "Control", there: (row: SampleLine) => row.control_scores?.[label] != null, value: (row: SampleLine) => short(row.control_scores?.[label] as number | undefined) },
    { name: "p-value", there: (row: SampleLine) => row.p_values?.[label] != null, value: (row: SampleLine) => short(row.p_values?.[label] as number | undefined) },
    { name: "Posterior", there: (row: SampleLine) => row.posterior != null, value: (row: SampleLine) => short(row.posterior) },
    { name: "Listed", there: (row: SampleLine) => row.flagged != null, value: (row: SampleLine) => (row.flagged == null ? "" : row.flagged ? "yes" : "no") },
  ];
  return columns.filter(({ there }) => rows.some(there));
}
