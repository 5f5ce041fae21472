import type { Table } from "./table";

export interface Mapping {
  text: string;
  label: string;
  id: string;
}

const GUESSES: Record<keyof Mapping, string[]> = {
  text: ["text", "input", "content", "passage", "sentence", "document_text", "body"],
  label: ["label", "member", "is_member", "membership", "y", "target"],
  id: ["id", "uuid", "key", "index"],
};

function guess(role: keyof Mapping, columns: string[]): string {
  for (const name of GUESSES[role]) {
    const match = columns.find((column) => column.toLowerCase() === name);
    if (match !== undefined) return match;
  }
  return "";
}

/** The columns that the service takes by default, or those that look like them. The text is else the column of the longest values. */
export function guessMapping(table: Table): Mapping {
  const mapping = { text: guess("text", table.columns), label: guess("label", table.columns), id: guess("id", table.columns) };
  if (mapping.text === "" && !isPaired(table.columns)) {
    const lengths = table.columns.map((_, index) => table.rows.reduce((sum, row) => sum + (row[index]?.length ?? 0), 0));
    const longest = lengths.indexOf(Math.max(...lengths));
    mapping.text = table.columns[longest] ?? "";
  }
  return mapping;
}

/** MIMIR has a text of each class in a row, which the service takes without a mapping. */
export function isPaired(columns: string[]): boolean {
  return columns.includes("member") && columns.includes("nonmember");
}

/** The column that the service takes for a role where the upload names none; it cannot be told to take none. */
export function defaultColumn(role: keyof Mapping, columns: string[]): string | undefined {
  return (role === "text" ? ["text", "input"] : [role]).find((name) => columns.includes(name));
}

/** Query parameters of an upload; a column that has the default name is not named. */
export function mappingParameters(mapping: Mapping): Record<string, string> {
  const parameters: Record<string, string> = {};
  if (mapping.text && mapping.text !== "text") parameters.text_column = mapping.text;
  if (mapping.label && mapping.label !== "label") parameters.label_column = mapping.label;
  if (mapping.id && mapping.id !== "id") parameters.id_column = mapping.id;
  return parameters;
}

const MEMBER = ["1", "true", "member"];
const NON_MEMBER = ["0", "false", "non-member", "nonmember", "non_member"];

export function labelCounts(table: Table, column: string): { members: number; nonMembers: number; others: number } {
  const index = table.columns.indexOf(column);
  const counts = { members: 0, nonMembers: 0, others: 0 };
  for (const row of table.rows) {
    const value = (row[index] ?? "").trim().toLowerCase();
    if (MEMBER.includes(value)) counts.members++;
    else if (NON_MEMBER.includes(value)) counts.nonMembers++;
    else counts.others++;
  }
  return counts;
}
