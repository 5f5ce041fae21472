// Texts and files that the walk gives to the page.

const fs = require("node:fs");
const path = require("node:path");
const zlib = require("node:zlib");

const HOSTILE = [
  "<script>document.title = 'owned'</script>", "</svg><img src=//example.org/x onerror=alert(1)>", "\u202eevil\u202c \u2066isolated\u2069",
  "NUL \u0000 and \u001b[31m", "\u{1f600}\u{1f468}\u200d\u{1f469}\u200d\u{1f467} e\u0301", "{{constructor.constructor('alert(1)')()}}",
].join(" ");

function demo(root) {
  return fs.readFileSync(path.join(root, "models/demo/audit.jsonl"), "utf8").trim().split("\n").map((line) => JSON.parse(line));
}

const quoted = (value) => `"${String(value).replaceAll('"', '""')}"`;

// CSV whose columns are not called as the service calls them.
function csv(samples) {
  return "key,passage,was_in,note\n" + samples.map(({ id, text, label }) => [id, quoted(text), label, quoted(HOSTILE.replaceAll("\u0000", ""))].join(",") + "\n").join("");
}

// A ZIP archive of stored entries.
function archive(entries) {
  const parts = [];
  const directory = [];
  let offset = 0;
  for (const [name, text] of entries) {
    const content = Buffer.from(text);
    const fields = Buffer.alloc(26);
    fields.writeUInt16LE(20, 0);
    fields.writeUInt32LE(zlib.crc32(content), 10);
    fields.writeUInt32LE(content.length, 14);
    fields.writeUInt32LE(content.length, 18);
    fields.writeUInt16LE(name.length, 22);
    parts.push(Buffer.from("PK\x03\x04"), fields, Buffer.from(name), content);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(offset, 10);
    directory.push(Buffer.from("PK\x01\x02\x14\x00"), fields, rest, Buffer.from(name));
    offset += 30 + name.length + content.length;
  }
  const listed = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(entries.length, 4);
  end.writeUInt16LE(entries.length, 6);
  end.writeUInt32LE(listed.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...parts, listed, Buffer.from("PK\x05\x06"), end]);
}

function epub(paragraphs) {
  const chapter = `<html xmlns="http://www.w3.org/1999/xhtml"><head><title>One</title></head><body>${paragraphs.map((text) => `<p>${text}</p>`).join("")}</body></html>`;
  return archive([
    ["mimetype", "application/epub+zip"],
    ["META-INF/container.xml", '<?xml version="1.0"?><container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0"><rootfiles><rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'],
    ["book.opf", '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0"><manifest><item id="one" href="one.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="one"/></spine></package>'],
    ["one.xhtml", chapter],
  ]);
}

// A folder of documents, one of them in a folder of its own, beside a file that is none.
function documents(folder, samples) {
  const shelf = path.join(folder, "shelf");
  fs.mkdirSync(path.join(shelf, "more"), { recursive: true });
  samples.forEach(({ text }, index) => fs.writeFileSync(path.join(shelf, index % 2 ? "more" : ".", `work ${index} \u00e4.txt`), `${text}\n\n${text.split(" ").reverse().join(" ")}\n`));
  fs.writeFileSync(path.join(shelf, "cover.jpg"), "no document");
  return shelf;
}

module.exports = { HOSTILE, archive, csv, demo, documents, epub };
