import type { Catalogue } from "../api/schemas";

/** Passes of one text for each further one that a method takes; methods of one name share theirs. */
export function furtherPasses(names: Iterable<string>, catalogue: Catalogue): { name: string; words: string; passes: number }[] {
  const further = [];
  for (const name of new Set(names)) {
    const words = catalogue.methods.find((method) => method.name === name)?.further_passes ?? "none";
    if (words === "none") continue;
    further.push({ name, words, passes: Number.parseInt(words, 10) || 1 });
  }
  return further;
}

/** A token for every four bytes of the texts, for each pass over them: as the service counts a job against a quota. */
export function estimate(bytes: number, passes: number, control: boolean): number {
  return Math.ceil(bytes / 4) * passes * (control ? 2 : 1);
}
