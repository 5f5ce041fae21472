import { useLayoutEffect, useRef } from "preact/hooks";
import { datasets as getDatasets } from "../api/calls";
import type { Dataset } from "../api/schemas";
import { isLabelled } from "../audit/draft";
import { usePages } from "../load";
import { bytes, count, digest, plural, time } from "../pure/format";
import { visible } from "../pure/text";
import { SelectField } from "./Fields";
import { Await } from "./Notices";
import { Upload } from "./Upload";

/** A dataset: uploaded now, or one that the service has. */
export function DatasetChooser({ dataset, onChoose }: { dataset: Dataset | null; onChoose(dataset: Dataset | null): void }) {
  const place = useRef<HTMLDivElement>(null);
  const shown = useRef(dataset);
  // The button that was pressed is gone.
  useLayoutEffect(() => {
    if (dataset !== shown.current) place.current?.focus();
    shown.current = dataset;
  }, [dataset]);
  return (
    <div ref={place} tabIndex={-1} role="group" aria-label="Texts">
      {dataset ? (
        <>
          <DatasetFacts dataset={dataset} />
          <p><button type="button" onClick={() => onChoose(null)}>Take other texts</button></p>
        </>
      ) : (
        <>
          <Upload onUploaded={onChoose} />
          <StoredDatasets onChoose={onChoose} />
        </>
      )}
    </div>
  );
}

function StoredDatasets({ onChoose }: { onChoose(dataset: Dataset): void }) {
  const { data, failure, more, busy } = usePages(getDatasets);
  return (
    <Await data={data} failure={failure}>
      {(list) => list.length > 0 && (
        <>
          <SelectField label="Or a dataset that the service has" value="" onChange={(id) => {
            const chosen = list.find((entry) => entry.id === id);
            if (chosen) onChoose(chosen);
          }} choices={[{ value: "", label: "choose" }, ...list.map((entry) => ({
            value: entry.id,
            label: `${plural(entry.samples, "sample")}, ${bytes(entry.bytes)}, ${time(entry.created_at)}${entry.texts ? "" : ", texts deleted"}`,
          }))]} />
          {more && <p><button type="button" disabled={busy} onClick={more}>List older datasets</button></p>}
        </>
      )}
    </Await>
  );
}

/** Files that were skipped are named openly up to this number. */
const NAMED = 20;

function DatasetFacts({ dataset }: { dataset: Dataset }) {
  const { cut } = dataset;
  return (
    <>
      <p>
        {plural(dataset.samples, "sample")} of {bytes(dataset.bytes)}:{" "}
        {isLabelled(dataset) ? `${plural(dataset.members, "member")}, ${plural(dataset.non_members, "non-member")}` : "without labels"}
        {dataset.groups > 0 && `, ${plural(dataset.groups, "group")}`}. <code title={dataset.id}>{digest(dataset.id)}</code>
      </p>
      {cut && cut.skipped.length > 0 && (
        <div class="notice">
          <p>The service skipped {cut.skipped.length >= 1000 ? "1,000 files or more" : plural(cut.skipped.length, "file")}:</p>
          <Skipped files={cut.skipped.slice(0, NAMED)} />
          {cut.skipped.length > NAMED && (
            <details>
              <summary>{plural(cut.skipped.length - NAMED, "more file")}</summary>
              <Skipped files={cut.skipped.slice(NAMED)} />
            </details>
          )}
        </div>
      )}
      {cut && (
        <details>
          <summary>Documents, and what was left out of them</summary>
          <dl class="facts">
            {(["documents", "documents_without_passages", "passages", "words"] as const).map((name) => (
              <div key={name}><dt>{name.replaceAll("_", " ")}</dt><dd>{count(cut[name])}</dd></div>
            ))}
            {Object.entries(cut.dropped).map(([name, { pieces, words }]) => (
              <div key={name}><dt>left out: {name.replaceAll("_", " ")}</dt><dd>{plural(pieces, "piece")} of {plural(words, "word")}</dd></div>
            ))}
          </dl>
        </details>
      )}
    </>
  );
}

function Skipped({ files }: { files: string[] }) {
  return <ul>{files.map((file, index) => <li key={index}>{visible(file)}</li>)}</ul>;
}
