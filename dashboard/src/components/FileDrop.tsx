import { useId, useState } from "preact/hooks";
import { type Picked, fromDrop, fromInput } from "../upload/files";

/** Takes files and folders: dropped, or chosen by either of two buttons. */
export function FileDrop({ onPick }: { onPick(picked: Picked[]): void }) {
  const [over, setOver] = useState(false);
  const id = useId();
  return (
    <div class={over ? "drop over" : "drop"}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={async (event) => {
        event.preventDefault();
        setOver(false);
        if (event.dataTransfer) onPick(await fromDrop(event.dataTransfer));
      }}>
      <p>Drop files, a folder or an EPUB here: NDJSON, JSON, CSV, TSV or Parquet with a text in each row, or documents as text, Markdown, HTML, EPUB or ZIP.</p>
      <div class="row">
        <p class="field">
          <label for={`${id}-files`}>Files</label>
          <input id={`${id}-files`} type="file" multiple onChange={(event) => onPick(fromInput(event.currentTarget.files))} />
        </p>
        <p class="field">
          <label for={`${id}-folder`}>Folder of documents</label>
          <input id={`${id}-folder`} type="file" {...{ webkitdirectory: true }} onChange={(event) => onPick(fromInput(event.currentTarget.files))} />
        </p>
      </div>
    </div>
  );
}
