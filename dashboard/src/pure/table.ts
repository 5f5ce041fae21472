export interface Table {
  columns: string[];
  rows: string[][];
}

/** The first records of CSV or TSV (RFC 4180). A record that the text ends within is left out if `cut` says that more follows. */
export function readDelimited(text: string, delimiter: string, most: number, cut: boolean): string[][] {
  const records: string[][] = [];
  let record: string[] = [];
  let field = "";
  let quoted = false;
  let begun = false;
  const end = () => {
    record.push(field);
    if (record.length > 1 || record[0] !== "") records.push(record);
    record = [];
    field = "";
    begun = false;
  };
  for (let at = text.startsWith("\ufeff") ? 1 : 0; at < text.length; at++) {
    const character = text[at]!;
    if (quoted) {
      if (character !== '"') field += character;
      else if (text[at + 1] === '"') field += text[at++];
      else quoted = false;
    } else if (character === '"' && field === "") {
      quoted = true;
      begun = true;
    } else if (character === delimiter) {
      record.push(field);
      field = "";
      begun = true;
    } else if (character === "\n" || character === "\r") {
      if (character === "\r" && text[at + 1] === "\n") at++;
      end();
      if (records.length >= most) return records;
    } else {
      field += character;
      begun = true;
    }
  }
  if (begun && !cut) end();
  return records;
}

export function delimitedTable(text: string, delimiter: string, most: number, cut: boolean): Table {
  const [columns = [], ...rows] = readDelimited(text, delimiter, most + 1, cut);
  return { columns, rows };
}

function cell(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function objectsTable(objects: unknown[]): Table {
  const columns: string[] = [];
  const records = objects.filter((value): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value));
  for (const record of records) for (const key of Object.keys(record)) if (!columns.includes(key)) columns.push(key);
  return { columns, rows: records.map((record) => columns.map((column) => cell(record[column]))) };
}

/** The first lines of NDJSON. A line that is not JSON ends the table. */
export function linesTable(text: string, most: number, cut: boolean): Table {
  const lines = text.split("\n");
  if (cut) lines.pop();
  const objects: unknown[] = [];
  for (const line of lines) {
    if (line.trim() === "") continue;
    if (objects.length >= most) break;
    try {
      objects.push(JSON.parse(line));
    } catch {
      break;
    }
  }
  return objectsTable(objects);
}

/** The first objects of a JSON array, read without the rest of it. */
export function arrayTable(text: string, most: number): Table {
  const objects: unknown[] = [];
  let depth = 0;
  let start = 0;
  let quoted = false;
  for (let at = 0; at < text.length && objects.length < most; at++) {
    const character = text[at];
    if (quoted) {
      if (character === "\\") at++;
      else if (character === '"') quoted = false;
    } else if (character === '"') quoted = true;
    else if (character === "{" || character === "[") {
      depth++;
      if (depth === 2) start = at;
    } else if (character === "}" || character === "]") {
      if (depth === 2) {
        try {
          objects.push(JSON.parse(text.slice(start, at + 1)));
        } catch {
          break;
        }
      }
      depth--;
    }
  }
  return objectsTable(objects);
}
