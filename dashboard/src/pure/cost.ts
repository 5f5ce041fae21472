import type { Catalogue, MethodRequest } from "../api/schemas";
import { plural } from "./format";

type Method = Exclude<MethodRequest, string>;

/** A pass over a text beside that over the text itself. Methods that need one of the same key share it. */
export interface Pass {
  key: string;
  words: string;
  count: number;
}

/** The further passes of methods as a request or a plan has them; null where the page cannot tell, as of a preset. */
export function furtherPasses(methods: readonly MethodRequest[] | null | undefined, catalogue: Catalogue, reference: string | null): Pass[] | null {
  if (!methods) return null;
  const passes = new Map<string, Pass>();
  for (const method of methods) {
    const own = passesOf(typeof method === "string" ? { name: method } : method, catalogue, reference);
    if (own === null) return null;
    for (const pass of own) passes.set(pass.key, pass);
  }
  return [...passes.values()];
}

function passesOf(method: Method, catalogue: Catalogue, reference: string | null): Pass[] | null {
  const one = (words: string, key = words): Pass => ({ key, words, count: 1 });
  const prefixed = (texts: unknown) => one("the text after a prefix", `prefix ${JSON.stringify(texts)}`);
  switch (method.name) {
    case "ref":
    case "wbc":
    case "ez": {
      const model = method.reference ?? reference;
      return model === null ? null : [one(`the text by the reference model ${model}`)];
    }
    case "lowercase":
      return [one("the lower-cased text")];
    case "recall":
      return [prefixed(method.prefix)];
    case "con_recall":
      return [prefixed(method.non_members), prefixed(method.members)];
    case "neighbor": {
      const { generator } = method;
      if (!generator) return [one("neighbours that come with the text, counted as one")];
      if (generator.count == null) return null;
      return [{ key: `neighbours ${JSON.stringify(generator)}`, words: `${plural(generator.count, "neighbour")} by ${generator.model}`, count: generator.count }];
    }
    case "fsd":
      return method.adapter ? [one(`the text under ${method.adapter}`)] : null;
    default:
      return catalogue.methods.some(({ name, further_passes }) => name === method.name && further_passes === "none") ? [] : null;
  }
}

/** A token for every four bytes of the texts, for each pass over them: as the service counts a job against a quota. */
export function estimate(bytes: number, passes: number): number {
  return Math.ceil(bytes / 4) * passes;
}
