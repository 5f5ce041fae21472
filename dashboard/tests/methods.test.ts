import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Catalogue, Dataset, ModelEntry } from "../src/api/schemas";
import { auditRequest, defaultControl, initialDraft, moreFields } from "../src/audit/draft";
import { estimate, furtherPasses } from "../src/pure/cost";
import { INITIAL_CHOICE, methodRequests, runsAlone } from "../src/pure/methods";
import { heat, tokenColumns } from "../src/score/columns";

// The answer of `GET /v1/methods`.
const catalogue = JSON.parse(readFileSync("tests/catalogue.json", "utf8")) as Catalogue;

test("methods, shares and weights become a request", () => {
  const choice = { ...INITIAL_CHOICE, names: ["loss", "min_k", "gap_k", "ref"], k: "0.1, 0.2", decays: ["linear" as const, "polynomial" as const] };
  assert.deepEqual(methodRequests(choice, catalogue, false).requests, [
    { name: "loss" },
    { name: "loss", pdr: { decay: "linear", alpha: 1 } },
    { name: "loss", pdr: { decay: "polynomial", alpha: 2 } },
    { name: "min_k", k: [0.1, 0.2] },
    { name: "min_k", k: [0.1, 0.2], pdr: { decay: "linear", alpha: 1 } },
    { name: "min_k", k: [0.1, 0.2], pdr: { decay: "polynomial", alpha: 2 } },
    { name: "gap_k", k: [0.1, 0.2] },
  ]);
  assert.equal(methodRequests({ ...choice, names: ["ref"] }, catalogue, true).requests.length, 3);
});

test("presets and further methods are added, and faults are named", () => {
  const none = { ...INITIAL_CHOICE, names: [] };
  assert.deepEqual(methodRequests({ ...none, preset: "paper_wikimia", length: "128" }, catalogue, true).requests, [{ preset: "paper_wikimia", length: 128 }]);
  assert.deepEqual(methodRequests({ ...none, more: '[{"name":"recall","prefix":["a"]}]' }, catalogue, true).requests, [{ name: "recall", prefix: ["a"] }]);
  assert.match(methodRequests(none, catalogue, true).fault!, /No method/);
  assert.match(methodRequests({ ...none, more: "{}" }, catalogue, true).fault!, /array/);
  assert.match(methodRequests({ ...INITIAL_CHOICE, alphas: { linear: "x", exponential: "", polynomial: "" } }, catalogue, true).fault!, /alpha of linear/);
});

test("methods run alone where they need nothing else", () => {
  const alone = (hasReference: boolean) => catalogue.methods.filter((method) => runsAlone(method, hasReference)).map(({ name }) => name as string);
  assert.ok(!alone(false).includes("ref") && alone(true).includes("ref"));
  for (const name of ["recall", "con_recall", "neighbor", "dc_pdd", "fsd"]) assert.ok(!alone(true).includes(name), name);
});

test("an audit is what the form says, and settings replace its fields", () => {
  const models = [{ id: "m", default: true, reference: "r", adapters: [{ id: "m:a" }] }, { id: "r" }] as ModelEntry[];
  const draft = initialDraft(models);
  assert.ok(draft.choice.names.includes("ref"));
  const dataset = { id: "sha256:0" } as Dataset;
  assert.deepEqual(auditRequest({ ...draft, control: "none" }, dataset, [], moreFields('{"overflow":"window"}').fields), {
    dataset: "sha256:0", model: "m", methods: [], overflow: "window", control: null,
  });
  assert.match(moreFields("[]").fault!, /object/);
  assert.deepEqual([defaultControl(models, "m"), defaultControl(models, "m:a"), defaultControl(models, "r")], ["r", "m", null]);
});

test("the cost is a token for every four bytes and pass", () => {
  assert.deepEqual(furtherPasses(["loss", "ref", "ref", "con_recall"], catalogue).map(({ name, passes }) => [name, passes]), [["ref", 1], ["con_recall", 2]]);
  assert.equal(estimate(401, 3, true), 606);
});

test("tokens that are not scored have no values, and colours go by the largest", () => {
  const token = (lp: number | null) => ({ id: 1, text: "a", offset: [0, 1], lp, mu: lp, sigma: 1, max_lp: lp, selected: [], weights: {}, contributions: { other: 2 } });
  const settings = { method: "loss", decay: "linear" as const, alpha: 1, k: 0.2 };
  const columns = tokenColumns([token(null), token(-1), token(-4)], settings, "label");
  assert.deepEqual([...columns.weight], [Number.NaN, 1, 0]);
  assert.deepEqual([...heat(columns.lp)], [0, -10, -20]);
  assert.equal(columns.score, -0.5);
  const other = tokenColumns([token(null), token(-1)], { ...settings, method: "zlib" }, "other");
  assert.ok(other.fromAnswer && other.score === null && other.contribution[1] === 2);
});
