import { useEffect, useRef, useState } from "preact/hooks";
import { type Failure, isAbort, toFailure } from "../api/failure";
import type { Dataset } from "../api/schemas";
import { uploadDataset } from "../api/upload";
import { type Mapping, guessMapping, mappingParameters } from "../pure/columns";
import { bytes, plural } from "../pure/format";
import { fileKind } from "../pure/kinds";
import type { Table } from "../pure/table";
import { visible } from "../pure/text";
import { zip } from "../pure/zip";
import { type Picked, type Selection, preview, select } from "../upload/files";
import { ColumnMapping } from "./ColumnMapping";
import { CheckField, SelectField, TextField } from "./Fields";
import { FileDrop } from "./FileDrop";
import { FailureNotice } from "./Notices";

interface Running {
  controller: AbortController;
  sent: number;
  size: number;
}

const NO_MAPPING: Mapping = { text: "", label: "", id: "" };

/** Files, their columns and how texts are cut; gives the dataset that the service made of them. */
export function Upload({ onUploaded }: { onUploaded(dataset: Dataset): void }) {
  const [selection, setSelection] = useState<Selection | null>(null);
  const [table, setTable] = useState<Table | null>(null);
  const [mapping, setMapping] = useState<Mapping>(NO_MAPPING);
  const [cut, setCut] = useState("");
  const [at, setAt] = useState("paragraph");
  const [retain, setRetain] = useState(true);
  const [running, setRunning] = useState<Running | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);

  const picks = useRef(0);
  const controller = running?.controller;
  useEffect(() => () => controller?.abort(), [controller]);

  const pick = async (picked: Picked[]) => {
    const pickNumber = ++picks.current;
    const next = select(picked);
    setFailure(null);
    const read = next.kind === "file" ? await preview(next.picked.file).catch(() => null) : null;
    // The preview of an earlier file may take longer than that of a later one.
    if (pickNumber !== picks.current) return;
    setMapping(read ? guessMapping(read) : NO_MAPPING);
    setTable(read);
    setSelection(next);
  };

  const upload = async (chosen: Exclude<Selection, { kind: "refused" }>) => {
    setFailure(null);
    const controller = new AbortController();
    setRunning({ controller, sent: 0, size: 0 });
    try {
      const parameters: Record<string, string> = { ...mappingParameters(mapping) };
      if (cut.trim() !== "") Object.assign(parameters, { cut: cut.trim(), at });
      if (!retain) parameters.retain = "false";
      let body: Blob;
      let contentType = "application/zip";
      if (chosen.kind === "file") {
        const { file } = chosen.picked;
        const kind = fileKind(file.name);
        body = file;
        contentType = kind.contentType;
        if (kind.form === "document" && !file.name.toLowerCase().endsWith(".zip")) parameters.name = file.name;
      } else {
        body = await zip(chosen.picked.map(({ path, file }) => ({ name: path, content: file })));
      }
      const { size } = body;
      const onSent = (sent: number) => setRunning({ controller, sent: Math.min(sent, size), size });
      onSent(0);
      onUploaded(await uploadDataset({ body, contentType, parameters, onSent, signal: controller.signal }));
    } catch (error) {
      if (!isAbort(error)) setFailure(toFailure(error));
    }
    setRunning(null);
  };

  const samples = selection?.kind === "file" && fileKind(selection.picked.file.name).form !== "document";
  return (
    <>
      <FileDrop onPick={(picked) => void pick(picked)} />
      {selection?.kind === "refused" && <p class="notice fault" role="alert">{selection.reason}</p>}
      {selection && selection.kind !== "refused" && (
        <>
          <p role="status"><SelectionWords selection={selection} /></p>
          {samples && <ColumnMapping table={table} mapping={mapping} onChange={setMapping} />}
          <div class="row">
            <TextField label="Words of a passage" value={cut} onInput={setCut} placeholder={samples ? "texts stay whole" : "128"} />
            {cut.trim() !== "" && <SelectField label="Cut at" value={at} onChange={setAt}
              choices={["paragraph", "sentence", "word"].map((value) => ({ value, label: value }))} />}
          </div>
          <p><CheckField label="Keep the texts after an audit has used them" checked={retain} onChange={setRetain} /></p>
          <FailureNotice failure={failure} />
          <p class="actions">
            {running
              ? <button type="button" onClick={() => running.controller.abort()}>Cancel the upload</button>
              : <button type="button" class="primary" onClick={() => void upload(selection)}>Upload</button>}
            {running && <UploadProgress running={running} />}
          </p>
        </>
      )}
    </>
  );
}

function UploadProgress({ running: { sent, size } }: { running: Running }) {
  if (size === 0) return <span role="status">Reading the files …</span>;
  return (
    <>
      <progress aria-label="Upload" max={size} value={sent} />
      <span>{sent < size ? `${bytes(sent)} of ${bytes(size)}` : "The service reads the texts …"}</span>
    </>
  );
}

function SelectionWords({ selection }: { selection: Exclude<Selection, { kind: "refused" }> }) {
  if (selection.kind === "file") return <><code>{visible(selection.picked.path)}</code>, {bytes(selection.picked.file.size)}</>;
  const size = selection.picked.reduce((sum, { file }) => sum + file.size, 0);
  return (
    <>
      {plural(selection.picked.length, "document")} of {bytes(size)}
      {selection.ignored > 0 && `; ${plural(selection.ignored, "other file")} left out`}
    </>
  );
}
