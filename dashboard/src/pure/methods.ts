import type { Catalogue, MethodEntry, MethodRequest, Parameter } from "../api/schemas";
import { DECAYS, type Decay } from "./decay";

/** True for a method that needs nothing but a text and, for `ref`, `wbc` and `ez`, a reference model that is configured. */
export function runsAlone(method: MethodEntry, hasReference: boolean): boolean {
  if (method.parameters.some((parameter) => parameter.required)) return false;
  return method.needs.every((need) => ["log_probabilities", "first_choice", "full_logits", "text"].includes(need) || (need === "reference_model" && hasReference));
}

const parameter = (parameters: Parameter[] | undefined, name: string) => parameters?.find((entry) => entry.name === name);

export function takesK(method: MethodEntry): boolean {
  return parameter(method.parameters, "k") !== undefined;
}

export function defaultK(method: MethodEntry | undefined): number {
  const value = parameter(method?.parameters, "k")?.default;
  return typeof value === "number" ? value : 0.2;
}

export type Range = NonNullable<Parameter["range"]>;

/** The values that a parameter takes. */
export function rangeOf(parameters: Parameter[] | undefined, name: string): Range {
  return parameter(parameters, name)?.range ?? { minimum: Number.NEGATIVE_INFINITY, exclusive_minimum: false };
}

/** The number of a text; null where it is none, or outside of the range. */
export function numberWithin(text: string, { minimum, exclusive_minimum, maximum }: Range): number | null {
  const number = Number(text);
  if (text.trim() === "" || !Number.isFinite(number)) return null;
  if (minimum != null && (number < minimum || (exclusive_minimum && number === minimum))) return null;
  return maximum != null && number > maximum ? null : number;
}

export function decaysOf(method: MethodEntry | undefined): Decay[] {
  return DECAYS.filter((decay) => method?.decays.includes(decay));
}

export interface MethodChoice {
  names: string[];
  unweighted: boolean;
  decays: Decay[];
  alphas: Record<Decay, string>;
  /** Shares of the methods that select tokens; empty for the default of each. */
  k: string;
  preset: string;
  length: string;
  /** Further methods, as the JSON array of a request. */
  more: string;
}

export const INITIAL_CHOICE: MethodChoice = {
  names: ["loss", "zlib", "min_k", "min_k_plus_plus"],
  unweighted: true,
  decays: ["linear"],
  alphas: { linear: "1", exponential: "0.02", polynomial: "2" },
  k: "",
  preset: "",
  length: "64",
  more: "",
};

/** Numbers separated by commas or spaces; null where one is none. */
export function numberList(text: string): number[] | null {
  const numbers = text.split(/[\s,]+/).filter((part) => part !== "").map(Number);
  return numbers.every(Number.isFinite) ? numbers : null;
}

function grid(numbers: number[]): number | number[] {
  return numbers.length === 1 ? numbers[0]! : numbers;
}

/** True for an array whose entries are names or objects; the service sees to the rest. */
export function isMethods(value: unknown): value is MethodRequest[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === "string" || (typeof entry === "object" && entry !== null && !Array.isArray(entry)));
}

export interface Methods {
  requests: MethodRequest[];
  /** The fault of a field, which the service has not seen yet. */
  fault: string | null;
}

/** Methods that the model cannot run any more, as after a change of model, are left out. */
export function methodRequests(choice: MethodChoice, catalogue: Catalogue, hasReference: boolean): Methods {
  const requests: MethodRequest[] = [];
  const fault = (text: string): Methods => ({ requests: [], fault: text });
  const k = numberList(choice.k);
  if (k === null) return fault("k takes numbers separated by commas.");
  for (const name of choice.names) {
    const method = catalogue.methods.find((entry) => entry.name === name);
    if (!method || !runsAlone(method, hasReference)) continue;
    const base: Exclude<MethodRequest, string> = { name };
    if (takesK(method) && k.length > 0) base.k = grid(k);
    const decays = choice.decays.filter((decay) => method.decays.includes(decay));
    if (choice.unweighted || decays.length === 0) requests.push(base);
    for (const decay of decays) {
      const alpha = numberList(choice.alphas[decay]);
      if (alpha === null || alpha.length === 0) return fault(`alpha of ${decay} takes numbers separated by commas.`);
      requests.push({ ...base, pdr: { decay, alpha: grid(alpha) } });
    }
  }
  const preset = catalogue.presets.find((entry) => entry.name === choice.preset);
  if (preset) {
    const takesLength = preset.parameters.some((parameter) => parameter.name === "length");
    requests.push(takesLength ? { preset: preset.name, length: Number(choice.length) } : { preset: preset.name });
  }
  if (choice.more.trim() !== "") {
    try {
      const more: unknown = JSON.parse(choice.more);
      if (!isMethods(more)) return fault("The further methods are not a JSON array of names and objects.");
      requests.push(...more);
    } catch (error) {
      return fault(`The further methods are not JSON: ${error instanceof Error ? error.message : error}`);
    }
  }
  return requests.length === 0 ? fault("No method is chosen.") : { requests, fault: null };
}
