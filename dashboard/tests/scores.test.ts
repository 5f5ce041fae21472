import assert from "node:assert/strict";
import { test } from "node:test";
import { weights } from "../src/pure/decay";
import { localScore, selectedCount } from "../src/pure/scores";

const near = (value: number, expected: number) => assert.ok(Math.abs(value - expected) < 1e-12, `${value} is not ${expected}`);

// The numbers of these tests were computed in float64 with numpy.
const lp = [-2.3, -0.7, -5.1, -0.05, -1.9, -3.4, -0.3, -6.2, -0.9, -1.1].map((value) => ({ lp: value }));
const score = (method: string, k: number, decay: "linear" | "exponential" | "polynomial" | null, alpha: number) =>
  localScore(method, k, lp, weights(decay, alpha, lp.length))!.score;

test("weights fall as the formulas say", () => {
  assert.deepEqual([...weights("linear", 1, 5)], [1, 0.75, 0.5, 0.25, 0]);
  assert.deepEqual([...weights("linear", 0.5, 5)], [1, 0.875, 0.75, 0.625, 0.5]);
  assert.deepEqual([...weights("polynomial", 2, 5)], [1, 0.5625, 0.25, 0.0625, 0]);
  [1, 0.980198673306755, 0.960789439152323, 0.941764533584249, 0.923116346386636].forEach((expected, index) => near(weights("exponential", 0.02, 5)[index]!, expected));
  [1, 0.971641657863073, 0.933032991536807, 0.870550563296124, 0].forEach((expected, index) => near(weights("polynomial", 0.1, 5)[index]!, expected));
  for (const decay of ["linear", "exponential", "polynomial"] as const) assert.deepEqual([...weights(decay, 0.7, 1)], [1]);
});

test("loss, plain and with decay", () => {
  near(score("loss", 0.2, null, 0), -2.195);
  near(score("loss", 0.2, "linear", 1), -1.10666666666667);
  near(score("loss", 0.2, "linear", 0.5), -1.65083333333333);
  near(score("loss", 0.2, "exponential", 0.02), -2.01054455502374);
  near(score("loss", 0.2, "exponential", 0.002), -2.1755291127794);
  near(score("loss", 0.2, "polynomial", 2), -0.756913580246914);
});

test("min_k selects by unweighted values and weights after that", () => {
  near(score("min_k", 0.2, null, 0), -5.65);
  near(score("min_k", 0.3, null, 0), -4.9);
  near(score("min_k", 0.2, "linear", 1), -2.67222222222222);
  near(score("min_k", 0.2, "exponential", 0.02), -5.14502359957472);
  near(score("min_k", 0.2, "polynomial", 2), -1.69567901234568);
  const { selected } = localScore("min_k", 0.2, lp, weights("linear", 1, 10))!;
  assert.deepEqual(selected.flatMap((on, index) => (on ? [index + 1] : [])), [3, 8]);
});

test("of equal values the earlier is selected", () => {
  const tied = [-5, -1, -5, -5, -0.1].map((value) => ({ lp: value }));
  near(localScore("min_k", 0.4, tied, weights("linear", 1, 5))!.score, -3.75);
});

test("min_k_plus_plus standardizes", () => {
  const tokens = [
    { lp: -1.4401896985612, mu: -0.947536963975426, sigma: Math.sqrt(0.616586274855508) },
    { lp: -1.38629436111989, mu: -1.38629436111989, sigma: Math.sqrt(1e-8) },
    { lp: -0.10103203665551, mu: -0.401500729070418, sigma: Math.sqrt(0.872029219576052) },
    { lp: -2.4401896985612, mu: -0.947536963975425, sigma: Math.sqrt(0.616586274855508) },
    { lp: -3.06673727949155, mu: -0.280959738872618, sigma: Math.sqrt(0.689193236990867) },
  ];
  near(localScore("min_k_plus_plus", 0.4, tokens, weights(null, 0, 5))!.score, -2.62827784302937);
  near(localScore("min_k_plus_plus", 0.4, tokens, weights("linear", 1, 5))!.score, -0.237613913593592);
});

test("a share selects at least one token, and what the page cannot compute is null", () => {
  assert.equal(selectedCount(0.01, 3), 1);
  assert.equal(selectedCount(0.29, 100), 28);
  assert.equal(localScore("zlib", 0.2, lp, weights(null, 0, 10)), null);
  assert.equal(localScore("loss", 0.2, [], weights(null, 0, 0)), null);
});
