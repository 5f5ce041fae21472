import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultColumn, guessMapping, labelCounts, mappingParameters } from "../src/pure/columns";
import { EventParser } from "../src/pure/events";
import { fileKind, isDocument } from "../src/pure/kinds";
import { numberList } from "../src/pure/methods";
import { arrayTable, delimitedTable, linesTable } from "../src/pure/table";
import { beginning, visible } from "../src/pure/text";
import { crc32, zip } from "../src/pure/zip";

test("CSV has quotes, line feeds and empty fields", () => {
  const table = delimitedTable('\ufeffid,text\r\n1,"a ""b""\nc"\r\n2,\r\n\r\n3,"last', ",", 10, true);
  assert.deepEqual(table, { columns: ["id", "text"], rows: [["1", 'a "b"\nc'], ["2", ""]] });
  assert.deepEqual(delimitedTable("a,b\n1,2", ",", 10, false).rows, [["1", "2"]]);
  assert.deepEqual(delimitedTable("a\tb\n1\t2\n3\t4\n", "\t", 1, false).rows, [["1", "2"]]);
});

test("lines and arrays give the columns of all objects read", () => {
  assert.deepEqual(linesTable('{"text":"a"}\n\n{"text":"b","label":1}\n{"text":"cut', 10, true), { columns: ["text", "label"], rows: [["a", ""], ["b", "1"]] });
  assert.deepEqual(arrayTable('[{"text":"}]\\""},{"text":"b","x":[{}]},{"te', 10), { columns: ["text", "x"], rows: [['}]"', ""], ["b", "[{}]"]] });
  assert.deepEqual(linesTable("no JSON\n", 10, false), { columns: [], rows: [] });
});

test("columns are guessed by name, and the text by length", () => {
  const table = { columns: ["key", "passage", "Member"], rows: [["1", "a long passage", "yes"], ["2", "b", "0"], ["3", "c", "true"]] };
  const mapping = guessMapping(table);
  assert.deepEqual(mapping, { text: "passage", label: "Member", id: "key" });
  assert.deepEqual(mappingParameters(mapping), { text_column: "passage", label_column: "Member", id_column: "key" });
  assert.deepEqual(mappingParameters({ text: "text", label: "label", id: "" }), {});
  assert.deepEqual(labelCounts(table, "Member"), { members: 1, nonMembers: 1, others: 1 });
  assert.deepEqual([defaultColumn("text", ["a", "input"]), defaultColumn("label", ["label"]), defaultColumn("id", ["key"])], ["input", "label", undefined]);
  assert.equal(guessMapping({ columns: ["a", "b"], rows: [["xx", "x"]] }).text, "a");
});

test("a kind is told from the name", () => {
  assert.deepEqual(fileKind("A.JSONL.gz"), { contentType: "application/x-ndjson", form: "lines", gzip: true });
  assert.equal(fileKind("x.csv.zst").form, "opaque");
  assert.equal(fileKind("noextension").contentType, "application/octet-stream");
  assert.deepEqual(["a.epub", "a.txt", "a.zip", "a.csv", "a.txt.gz"].map(isDocument), [true, true, false, false, false]);
});

test("characters that are not seen are written out", () => {
  assert.equal(visible("a\u202eb\u0000\n\u00a0😀"), "a⟨RLO⟩b⟨U+0000⟩⏎\u00a0😀");
  assert.equal(beginning("ab😀c", 3), "ab…");
});

test("events arrive in parts", () => {
  const parser = new EventParser();
  assert.deepEqual(parser.push("id: 4\nevent: progress\nda"), []);
  assert.deepEqual(parser.push('ta: {"done":0}\n\n:\n\n'), [{ id: "4", event: "progress", data: '{"done":0}' }]);
});

test("numbers are separated by commas or spaces", () => {
  assert.deepEqual(numberList(" 0.1, 0.5 1"), [0.1, 0.5, 1]);
  assert.equal(numberList("0.1, x"), null);
});

test("an archive has the sums that ZIP asks for", async () => {
  assert.equal(crc32(new TextEncoder().encode("123456789")), 0xcbf43926);
  const archive = new Uint8Array(await (await zip([{ name: "ä.txt", content: new Blob(["one"]) }, { name: "b/c.txt", content: new Blob(["two"]) }])).arrayBuffer());
  const end = new DataView(archive.buffer, archive.length - 22);
  assert.equal(end.getUint32(0, true), 0x06054b50);
  assert.equal(end.getUint16(10, true), 2);
  assert.equal(end.getUint32(12, true) + end.getUint32(16, true) + 22, archive.length);
});
