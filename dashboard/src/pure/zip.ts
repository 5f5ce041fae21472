const TABLE = new Uint32Array(256).map((_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});

export function crc32(bytes: Uint8Array, before = 0): number {
  let value = ~before;
  for (const byte of bytes) value = TABLE[(value ^ byte) & 0xff]! ^ (value >>> 8);
  return ~value >>> 0;
}

export interface Entry {
  name: string;
  content: Blob;
}

async function checksum(content: Blob): Promise<number> {
  let value = 0;
  const reader = content.stream().getReader();
  for (;;) {
    const { done, value: part } = await reader.read();
    if (done) return value;
    value = crc32(part, value);
  }
}

/** A ZIP archive of the entries as they are, uncompressed: it refers to their blobs and copies none. Below 4 GiB and 65,535 entries. */
export async function zip(entries: readonly Entry[]): Promise<Blob> {
  const parts: BlobPart[] = [];
  const directory: BlobPart[] = [];
  let offset = 0;
  let directorySize = 0;
  for (const { name, content } of entries) {
    const path = new TextEncoder().encode(name);
    const crc = await checksum(content);
    // Version 2.0, names in UTF-8, stored, 1 January 1980.
    const common = [20, 0x800, 0, 0, 0x21] as const;
    const header = fields([[4, 0x04034b50], ...common.map((value) => [2, value] as const), [4, crc], [4, content.size], [4, content.size], [2, path.length], [2, 0]]);
    const record = fields([
      [4, 0x02014b50], [2, 20], ...common.map((value) => [2, value] as const), [4, crc], [4, content.size], [4, content.size], [2, path.length],
      [2, 0], [2, 0], [2, 0], [2, 0], [4, 0], [4, offset],
    ]);
    parts.push(header, path, content);
    directory.push(record, path);
    offset += header.length + path.length + content.size;
    directorySize += record.length + path.length;
  }
  if (offset + directorySize > 0xffffffff || entries.length > 0xfffe) throw new Error("The files are more than a ZIP archive takes: 4 GiB, or 65,534 files.");
  const end = fields([[4, 0x06054b50], [2, 0], [2, 0], [2, entries.length], [2, entries.length], [4, directorySize], [4, offset], [2, 0]]);
  return new Blob([...parts, ...directory, end], { type: "application/zip" });
}

function fields(values: readonly (readonly [2 | 4, number])[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(values.reduce((size, [width]) => size + width, 0));
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const [width, value] of values) {
    if (width === 2) view.setUint16(at, value, true);
    else view.setUint32(at, value, true);
    at += width;
  }
  return bytes;
}
