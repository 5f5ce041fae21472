import type { TokenDetail } from "../api/schemas";
import { weights } from "../pure/decay";
import { localScore, standardized } from "../pure/scores";
import type { Settings } from "./request";

export const VIEWS = ["lp", "z", "weight", "contribution"] as const;
export type View = (typeof VIEWS)[number];

/** Values by token; NaN where a token has none. */
export interface TokenColumns {
  lp: Float64Array;
  z: Float64Array;
  weight: Float64Array;
  contribution: Float64Array;
  selected: boolean[];
  /** The score, where the page computes it itself. */
  score: number | null;
  /** True where contributions come from the last answer, since the page does not compute those of the method. */
  fromAnswer: boolean;
}

export function tokenColumns(tokens: readonly TokenDetail[], settings: Settings, label: string | undefined): TokenColumns {
  const empty = () => new Float64Array(tokens.length).fill(Number.NaN);
  const columns: TokenColumns = {
    lp: empty(), z: empty(), weight: empty(), contribution: empty(), selected: new Array(tokens.length).fill(false), score: null, fromAnswer: false,
  };
  const places: number[] = [];
  tokens.forEach((token, index) => {
    if (token.lp == null) return;
    places.push(index);
    columns.lp[index] = token.lp;
    columns.z[index] = standardized(token) ?? Number.NaN;
  });
  const byPosition = weights(settings.decay, settings.alpha, places.length);
  places.forEach((place, t) => {
    columns.weight[place] = byPosition[t]!;
  });
  const local = localScore(settings.method, settings.k, places.map((place) => tokens[place]!), byPosition);
  if (local) {
    columns.score = local.score;
    places.forEach((place, t) => {
      columns.contribution[place] = local.contributions[t]!;
      columns.selected[place] = settings.method !== "loss" && local.selected[t]!;
    });
  } else if (label !== undefined) {
    columns.fromAnswer = true;
    for (const place of places) {
      const token = tokens[place]!;
      columns.contribution[place] = token.contributions[label] ?? Number.NaN;
      columns.selected[place] = token.selected.includes(label);
    }
  }
  return columns;
}

/** The strength of the colour of each value, from -STEPS to STEPS: the root of its share of the largest one, so that small ones are seen. */
export const STEPS = 20;

export function heat(values: Float64Array): Int8Array {
  let largest = 0;
  for (const value of values) if (Math.abs(value) > largest && Number.isFinite(value)) largest = Math.abs(value);
  return Int8Array.from(values, (value) => (largest > 0 && Number.isFinite(value) ? Math.round(Math.sign(value) * Math.sqrt(Math.abs(value) / largest) * STEPS) : 0));
}
