import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Catalogue, Dataset, Job, MethodRequest, ModelEntry } from "../src/api/schemas";
import { auditRequest, controlOf, defaultControl, initialDraft, moreFields, possible } from "../src/audit/draft";
import { estimate, furtherPasses } from "../src/pure/cost";
import { INITIAL_CHOICE, methodRequests, numberWithin, rangeOf, runsAlone } from "../src/pure/methods";
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
  assert.match(moreFields('{"methods":[null]}').fault!, /methods/);
  assert.deepEqual([defaultControl(models, "m"), defaultControl(models, "m:a"), defaultControl(models, "r")], ["r", "m", null]);
});

test("passes are shared, and are those of the request", () => {
  const passes = (...methods: MethodRequest[]) => furtherPasses(methods, catalogue, "r")?.reduce((sum, pass) => sum + pass.count, 0);
  assert.equal(passes("loss", { name: "min_k", k: [0.1, 0.2] }), 0);
  assert.equal(passes("ref", "wbc", { name: "ez", reference: "r" }, { name: "ref", pdr: { decay: "linear", alpha: 1 } }), 1);
  assert.equal(passes("ref", { name: "ref", reference: "other" }, "lowercase"), 3);
  assert.equal(passes({ name: "recall", prefix: ["a"] }, { name: "con_recall", non_members: ["a"], members: ["b"] }), 2);
  assert.equal(passes({ name: "neighbor", generator: { model: "m", count: 25 } }), 25);
  for (const unknown of [{ preset: "paper_mimir" }, { name: "neighbor", generator: { model: "m" } }, "new"]) assert.equal(passes(unknown as MethodRequest), undefined);
  assert.equal(furtherPasses(["ref"], catalogue, null), null);
  assert.equal(estimate(401, 3), 303);
});

test("a choice that a change of the model makes impossible is left out", () => {
  const models = [{ id: "m", default: true, adapters: [{ id: "m:a" }] }, { id: "r" }] as ModelEntry[];
  const calibrations = [{ id: "c", model: "m" }] as Job[];
  const draft = { ...initialDraft(models), control: "r", calibration: "c" };
  assert.deepEqual(possible(draft, models, calibrations), draft);
  const changed = possible({ ...draft, model: "r" }, models, calibrations);
  assert.deepEqual([changed.control, changed.calibration], ["", ""]);
  assert.equal(possible({ ...draft, model: "gone" }, models, calibrations).model, "m");
  const labelled = { members: 1, non_members: 1 } as Dataset;
  assert.equal(controlOf({ model: "r", control: null }, labelled, models), null);
  assert.equal(controlOf({ model: "m:a" }, labelled, models), "m");
  assert.equal(controlOf({ model: "m:a" }, { members: 0, non_members: 0 } as Dataset, models), null);
});

test("numbers are taken within the range of a parameter", () => {
  const k = rangeOf(catalogue.methods.find(({ name }) => name === "min_k")!.parameters, "k");
  assert.deepEqual(["0", "0.05", "1", "1.5", "", "x"].map((text) => numberWithin(text, k)), [null, 0.05, 1, null, null, null]);
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
