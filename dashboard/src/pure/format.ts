/** A number in a table; the full digits belong in its title. */
export function short(value: number | null | undefined, digits = 4): string {
  if (value == null || !Number.isFinite(value)) return "\u2013";
  if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e6)) return value.toExponential(2);
  return value.toFixed(digits);
}

export function count(value: number): string {
  return value.toLocaleString("en");
}

export function bytes(value: number | null | undefined): string {
  if (value == null) return "\u2013";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let amount = value;
  while (amount >= 1024 && unit < units.length - 1) {
    amount /= 1024;
    unit++;
  }
  return `${unit === 0 ? amount : amount.toFixed(1)} ${units[unit]}`;
}

export function time(value: string | null | undefined): string {
  if (!value) return "\u2013";
  const date = new Date(value);
  return Number.isNaN(date.valueOf()) ? value : date.toLocaleString("en", { dateStyle: "medium", timeStyle: "medium" });
}

export function digest(value: string | null | undefined): string {
  if (!value) return "\u2013";
  return value.length > 22 ? `${value.slice(0, 19)}\u2026` : value;
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}
