import { useState } from "preact/hooks";
import { datasets as getDatasets } from "../api/calls";
import type { Dataset } from "../api/schemas";
import { useLoad } from "../load";
import { bytes, digest, plural, time } from "../pure/format";
import { SelectField } from "./Fields";
import { Await } from "./Notices";
import { Upload } from "./Upload";

/** A dataset: uploaded now, or one that the service has. */
export function DatasetChooser({ dataset, onChoose }: { dataset: Dataset | null; onChoose(dataset: Dataset | null): void }) {
  const { data, failure, reload } = useLoad(getDatasets, []);
  const [replacing, setReplacing] = useState(false);
  if (dataset && !replacing) {
    return (
      <div role="status">
        <DatasetFacts dataset={dataset} />
        <p><button type="button" onClick={() => {
          setReplacing(true);
          reload();
        }}>Take other texts</button></p>
      </div>
    );
  }
  const choose = (chosen: Dataset) => {
    setReplacing(false);
    onChoose(chosen);
  };
  return (
    <>
      <Upload onUploaded={choose} />
      <Await data={data} failure={failure}>
        {(list) => list.datasets.length > 0 && (
          <SelectField label="Or a dataset that the service has" value="" onChange={(id) => {
            const chosen = list.datasets.find((entry) => entry.id === id);
            if (chosen) choose(chosen);
          }} choices={[{ value: "", label: "choose" }, ...list.datasets.map((entry) => ({
            value: entry.id,
            label: `${plural(entry.samples, "sample")}, ${bytes(entry.bytes)}, ${time(entry.created_at)}${entry.texts ? "" : ", texts deleted"}`,
          }))]} />
        )}
      </Await>
    </>
  );
}

function DatasetFacts({ dataset }: { dataset: Dataset }) {
  const labelled = dataset.members + dataset.non_members > 0;
  const { cut } = dataset;
  return (
    <>
      <p>
        {plural(dataset.samples, "sample")} of {bytes(dataset.bytes)}:{" "}
        {labelled ? `${plural(dataset.members, "member")}, ${plural(dataset.non_members, "non-member")}` : "without labels"}
        {dataset.groups > 0 && `, ${plural(dataset.groups, "group")}`}. <code title={dataset.id}>{digest(dataset.id)}</code>
      </p>
      {cut && (
        <details>
          <summary>Documents, and what was left out of them</summary>
          <dl class="facts">
            {Object.entries(cut).filter(([, value]) => typeof value === "number").map(([name, value]) => (
              <div key={name}><dt>{name.replaceAll("_", " ")}</dt><dd>{String(value)}</dd></div>
            ))}
          </dl>
        </details>
      )}
    </>
  );
}
