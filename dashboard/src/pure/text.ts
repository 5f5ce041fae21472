const NAMES: Record<number, string> = {
  0x061c: "ALM", 0x200b: "ZWSP", 0x200e: "LRM", 0x200f: "RLM", 0x2028: "LS", 0x2029: "PS", 0x202a: "LRE", 0x202b: "RLE", 0x202c: "PDF",
  0x202d: "LRO", 0x202e: "RLO", 0x2060: "WJ", 0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI", 0x2069: "PDI", 0xfeff: "BOM",
};

/** The text with control and direction characters written out, so that they are seen and do nothing. */
export function visible(text: string): string {
  let shown = "";
  for (const character of text) {
    const code = character.codePointAt(0)!;
    if (character === "\n") shown += "\u23ce";
    else if (character === "\t") shown += "\u21e5";
    else if (NAMES[code]) shown += `\u27e8${NAMES[code]}\u27e9`;
    else if (code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0xd800 && code < 0xe000)) shown += `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
    else shown += character;
  }
  return shown;
}

/** The beginning of a text in at most `length` UTF-16 units, with an ellipsis where more follows. */
export function beginning(text: string, length: number): string {
  if (text.length <= length) return text;
  const cut = text.slice(0, length);
  return `${/[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut}\u2026`;
}
