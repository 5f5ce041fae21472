import { fileKind, isDocument } from "../pure/kinds";
import { type Table, arrayTable, delimitedTable, linesTable } from "../pure/table";

export interface Picked {
  path: string;
  file: File;
}

/** The files of an input, with their paths within the folder that was chosen. */
export function fromInput(files: FileList | null): Picked[] {
  return Array.from(files ?? [], (file) => ({ path: file.webkitRelativePath || file.name, file }));
}

/** The files that were dropped, those within folders included. */
export async function fromDrop(transfer: DataTransfer): Promise<Picked[]> {
  // Entries are there only until the event ends, so all are taken before anything is awaited.
  const entries = Array.from(transfer.items, (item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  if (entries.length === 0) return fromInput(transfer.files);
  const picked: Picked[] = [];
  for (const entry of entries) await walk(entry, picked);
  return picked;
}

async function walk(entry: FileSystemEntry, picked: Picked[]): Promise<void> {
  const path = entry.fullPath.replace(/^\//, "");
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    picked.push({ path, file });
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  for (;;) {
    const batch = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (batch.length === 0) return;
    for (const child of batch) await walk(child, picked);
  }
}

/** The content of an upload: one file as it is, or documents as an archive. */
export type Selection =
  | { kind: "file"; picked: Picked }
  | { kind: "documents"; picked: Picked[]; ignored: number }
  | { kind: "refused"; reason: string };

export function select(picked: Picked[]): Selection {
  const [first] = picked;
  if (!first) return { kind: "refused", reason: "There is no file in it." };
  if (picked.length === 1) return { kind: "file", picked: first };
  const documents = picked.filter(({ path }) => isDocument(path) && !path.split("/").some((part) => part.startsWith(".")));
  if (documents.length === 0) {
    return { kind: "refused", reason: "Several files are taken where they are documents (text, Markdown, HTML, EPUB). A file of samples goes alone." };
  }
  return { kind: "documents", picked: documents, ignored: picked.length - documents.length };
}

/** So much of a file is read for its preview: a line of it may have 1 MiB. */
const PREVIEW = 2 * 1024 * 1024;
const ROWS = 20;

/** The first records of a file of samples; null where the page cannot read its kind. */
export async function preview(file: File): Promise<Table | null> {
  const { form, gzip } = fileKind(file.name);
  if (form === "opaque" || form === "document") return null;
  const { text, cut } = gzip ? await unzipped(file) : { text: await file.slice(0, PREVIEW).text(), cut: file.size > PREVIEW };
  switch (form) {
    case "lines":
      return linesTable(text, ROWS, cut);
    case "array":
      return arrayTable(text, ROWS);
    case "csv":
      return delimitedTable(text, ",", ROWS, cut);
    case "tsv":
      return delimitedTable(text, "\t", ROWS, cut);
  }
}

async function unzipped(file: File): Promise<{ text: string; cut: boolean }> {
  const reader = file.stream().pipeThrough(new DecompressionStream("gzip")).pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (text.length < PREVIEW) {
    const { done, value } = await reader.read();
    if (done) return { text, cut: false };
    text += value;
  }
  void reader.cancel();
  return { text, cut: true };
}
