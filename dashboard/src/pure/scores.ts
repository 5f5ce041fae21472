/** The four numbers of a token; all are null for a token that is never scored. */
export interface TokenNumbers {
  lp?: number | null;
  mu?: number | null;
  sigma?: number | null;
}

export interface LocalScore {
  score: number;
  contributions: Float64Array;
  selected: boolean[];
}

const LOCAL = ["loss", "min_k", "min_k_plus_plus", "max_k"];

/** True for the methods that `localScore` computes from log-probability, mean and deviation alone. */
export function isLocal(method: string): boolean {
  return LOCAL.includes(method);
}

export function standardized(token: TokenNumbers): number | null {
  if (token.lp == null || token.mu == null || token.sigma == null) return null;
  return (token.lp - token.mu) / token.sigma;
}

/** The number of tokens of `n` that a share selects, at least one. */
export function selectedCount(k: number, n: number): number {
  return Math.max(1, Math.floor(k * n));
}

/**
 * The score of a method over the scored tokens, as the service computes it: tokens are selected by their unweighted values (of equal
 * ones the earlier), then weighted, and the sum is divided by how many were selected.
 */
export function localScore(method: string, k: number, scored: readonly TokenNumbers[], weights: Float64Array): LocalScore | null {
  if (!isLocal(method) || scored.length === 0) return null;
  const values = scored.map((token) => (method === "min_k_plus_plus" ? standardized(token) : token.lp) ?? Number.NaN);
  const selected: boolean[] = new Array(values.length).fill(method === "loss");
  let count = values.length;
  if (method !== "loss") {
    count = selectedCount(k, values.length);
    const sign = method === "max_k" ? -1 : 1;
    const order = values.map((_, index) => index).sort((a, b) => sign * (values[a]! - values[b]!) || a - b);
    for (const index of order.slice(0, count)) selected[index] = true;
  }
  const contributions = new Float64Array(values.length);
  let score = 0;
  for (let index = 0; index < values.length; index++) {
    if (!selected[index]) continue;
    contributions[index] = (weights[index]! * values[index]!) / count;
    score += contributions[index]!;
  }
  return { score, contributions, selected };
}
