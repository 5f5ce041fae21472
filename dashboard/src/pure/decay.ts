export const DECAYS = ["linear", "exponential", "polynomial"] as const;
export type Decay = (typeof DECAYS)[number];

/** The weight of the scored token `t` (from 1) of `n`. */
export function weight(decay: Decay, alpha: number, t: number, n: number): number {
  const passed = n > 1 ? (t - 1) / (n - 1) : 0;
  switch (decay) {
    case "linear":
      return 1 - alpha * passed;
    case "exponential":
      return Math.exp(-alpha * (t - 1));
    case "polynomial":
      return n > 1 ? (1 - passed) ** alpha : 1;
  }
}

export function weights(decay: Decay | null, alpha: number, n: number): Float64Array {
  const all = new Float64Array(n).fill(1);
  if (decay) for (let t = 1; t <= n; t++) all[t - 1] = weight(decay, alpha, t, n);
  return all;
}

/** Bounds and step of a slider; the service takes values beyond them. */
export const ALPHA_SLIDER: Record<Decay, { minimum: number; maximum: number; step: number; start: number }> = {
  linear: { minimum: 0, maximum: 1, step: 0.01, start: 1 },
  exponential: { minimum: 0, maximum: 0.1, step: 0.002, start: 0.02 },
  polynomial: { minimum: 0.1, maximum: 3, step: 0.1, start: 2 },
};
