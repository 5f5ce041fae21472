// The same with the types that openapi-typescript makes of the document, over openapi-fetch.
import { readFileSync } from "node:fs";
import createClient from "openapi-fetch";
import type { components, paths } from "./pdr-audit";

const [url, text, file] = process.argv.slice(2) as [string, string, string];
const client = createClient<paths>({ baseUrl: url });

const scores = await client.POST("/v1/score", {
  body: { inputs: text, methods: ["loss", { name: "min_k", k: 0.2 }] },
});
if (scores.error) throw new Error(scores.error.detail);
const refusal = await client.POST("/v1/score", { body: { inputs: text, methods: ["nope"] } });
if (refusal.error?.status !== 422) throw new Error("an unknown method was taken");

const samples = JSON.parse(readFileSync(file, "utf8")) as components["schemas"]["SampleRequest"][];
const submitted = await client.POST("/v1/audits", {
  body: { samples, methods: ["loss"], metrics: { fpr_targets: [0.05] } },
});
if (submitted.error) throw new Error(submitted.error.detail);
let audit = submitted.data;
while (audit.status === "queued" || audit.status === "running") {
  await new Promise((resolve) => setTimeout(resolve, 200));
  const seen = await client.GET("/v1/audits/{id}", { params: { path: { id: audit.id } } });
  if (seen.error) throw new Error(seen.error.detail);
  audit = seen.data;
}
console.log(scores.data.results[0]?.scores.loss, audit.results?.methods[0]?.auroc);
