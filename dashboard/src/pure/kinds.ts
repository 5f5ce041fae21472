export type FileKind = { contentType: string; form: "lines" | "array" | "csv" | "tsv" | "document" | "opaque"; gzip: boolean };

const KINDS: Record<string, [string, FileKind["form"]]> = {
  jsonl: ["application/x-ndjson", "lines"],
  ndjson: ["application/x-ndjson", "lines"],
  json: ["application/json", "array"],
  csv: ["text/csv", "csv"],
  tsv: ["text/tab-separated-values", "tsv"],
  parquet: ["application/vnd.apache.parquet", "opaque"],
  epub: ["application/epub+zip", "document"],
  zip: ["application/zip", "document"],
  txt: ["text/plain", "document"],
  text: ["text/plain", "document"],
  md: ["text/markdown", "document"],
  markdown: ["text/markdown", "document"],
  html: ["text/html", "document"],
  htm: ["text/html", "document"],
  xhtml: ["text/html", "document"],
};

/** The kind of a file by its name, as an upload declares it. */
export function fileKind(name: string): FileKind {
  const parts = name.toLowerCase().split(".");
  const compressed = parts.at(-1) === "gz" || parts.at(-1) === "zst";
  const gzip = parts.at(-1) === "gz";
  if (compressed) parts.pop();
  const [contentType, form] = KINDS[parts.at(-1) ?? ""] ?? ["application/octet-stream", "opaque" as const];
  return { contentType, form: compressed && !gzip ? "opaque" : form, gzip };
}

/** Documents go into one archive; a file of samples goes alone. */
export function isDocument(name: string): boolean {
  const { form, gzip } = fileKind(name);
  return form === "document" && !gzip && !name.toLowerCase().endsWith(".zip");
}
