// New audits out of files, their jobs and reports, comparisons, known works; audits of all kinds; 100,000 samples.

const fs = require("node:fs");
const path = require("node:path");
const { HOSTILE, archive, csv, documents, epub } = require("./inputs.cjs");

// Drops files as a hand does: the page gets the events of a drag with a DataTransfer.
async function drop(page, name, content) {
  const transfer = await page.evaluateHandle(([file, bytes]) => {
    const data = new DataTransfer();
    data.items.add(new File([Uint8Array.from(atob(bytes), (character) => character.charCodeAt(0))], file));
    return data;
  }, [name, Buffer.from(content).toString("base64")]);
  for (const event of ["dragover", "drop"]) await page.dispatchEvent(".drop", event, { dataTransfer: transfer });
}

// Drops a file or a folder of the disk, as a file manager does.
async function dropFromDisk(page, file) {
  await page.locator(".drop").scrollIntoViewIfNeeded();
  const { x, y } = await page.locator(".drop").boundingBox();
  const session = await page.context().newCDPSession(page);
  const data = { items: [], files: [file], dragOperationsMask: 1 };
  for (const type of ["dragEnter", "dragOver", "drop"]) await session.send("Input.dispatchDragEvent", { type, x: x + 20, y: y + 20, data });
}

const field = (page, label) => page.getByLabel(label, { exact: true });

async function upload(page) {
  await page.getByRole("button", { name: "Upload" }).click();
  await page.getByRole("button", { name: "Take other texts" }).waitFor();
}

async function finished(page, status = "succeeded") {
  const ended = page.waitForFunction((word) => document.querySelector(".status")?.textContent === word, status, { timeout: 300_000 });
  await ended.catch(async () => {
    throw new Error(`the job has not ${status}: ${await page.locator("main").innerText()}`);
  });
}

// One audit from the file to the report, then another one of another model, and their comparison.
async function audits({ walk, proxy, service, samples, check, view = {}, suffix = "" }) {
  const page = await walk.open(`${proxy.address}#/new-audit`, view);
  await page.waitForSelector(".drop");
  await drop(page, "labelled.csv", csv(samples));
  await page.waitForSelector("caption");
  check((await field(page, "Text column").inputValue()) === "passage", "the column of the text is not guessed");
  await field(page, "Label column").selectOption("was_in");
  await field(page, "Id column").selectOption("key");
  check((await page.locator("tbody tr").count()) === 5, "the preview has no five rows");
  await walk.inspect(page, `new-audit-mapping${suffix}`);
  await upload(page);
  check(/500 members, 500 non-members/.test(await page.locator("main").textContent()), "the upload does not count 500 of each class");
  await field(page, "Name").fill("walk");
  const passes = async () => /in (\d+) passes/.exec(await page.locator("[data-cost]").textContent())?.[1];
  check((await passes()) === "4", `text and reference, by model and control, count as ${await passes()} passes`);
  await field(page, "Preset").selectOption("paper_mimir");
  await page.getByText("The page cannot tell how often").waitFor();
  await page.getByRole("button", { name: "Fix the plan" }).click();
  await page.locator("[data-cost]").waitFor();
  check((await passes()) === "6", `the preset of the plan counts as ${await passes()} passes`);
  await field(page, "Preset").selectOption("");
  await page.getByRole("button", { name: "Fix the plan" }).click();
  const planned = await page.locator("[data-plan]").textContent();
  const { body: plan } = await service.ask("POST", "/v1/plans", JSON.parse(proxy.bodies.plan), {});
  check(plan.id === planned, `the plan is ${planned}, and the API gives ${plan.id}`);
  await walk.inspect(page, `new-audit${suffix}`);
  await field(page, "Primary method").selectOption("min_k_plus_plus(k=0.2)");
  check(/changed since the plan/.test(await page.locator("main").textContent()), "a plan of other settings is kept");
  await page.getByRole("button", { name: "Fix the plan" }).click();
  await page.locator("[data-plan]").waitFor();
  await page.getByRole("button", { name: "Start the audit" }).click();
  await page.waitForSelector("progress");
  await walk.picture(page, `job-running${suffix}`);
  await finished(page);
  await page.waitForSelector("[data-verdict]");
  const id = page.url().split("/").pop();
  const { body: audit } = await service.ask("GET", `/v1/audits/${id}`);
  check((await page.locator("[data-verdict]").textContent()) === audit.results.verdict.sentence, "the verdict is not the sentence of the API");
  check(audit.results.plan.planned, "the audit keeps to no plan");
  check(audit.results.provenance !== undefined && audit.name === "walk", "the name is lost");
  await reports({ page, service, id, check });
  await walk.inspect(page, `audit${suffix}`);

  await page.goto(`${proxy.address}#/new-audit`);
  await field(page, "Or a dataset that the service has").selectOption({ index: 1 });
  await field(page, "Model").selectOption("demo-reference");
  await page.getByRole("button", { name: "Start the audit" }).click();
  await finished(page);
  await page.goto(`${proxy.address}#/jobs/audits`);
  await page.getByRole("checkbox").first().waitFor();
  await page.getByRole("checkbox").nth(0).check();
  await page.getByRole("checkbox").nth(1).check();
  await walk.inspect(page, `jobs${suffix}`);
  await page.getByRole("link", { name: "Compare the two" }).click();
  await page.waitForSelector("iframe");
  const [, a, b] = page.url().match(/compare\/([^/]+)\/([^/]+)$/);
  const { body: compared } = await service.ask("GET", `/v1/audits/${a}/compare/${b}`);
  const delta = await page.locator("td[title]").first().getAttribute("title");
  check(delta === String(compared.methods[0].delta), `the difference is ${delta}, and the API gives ${compared.methods[0].delta}`);
  await walk.inspect(page, `compare${suffix}`);
  await field(page, "Question").selectOption("retain");
  await page.getByRole("button", { name: "Compare", exact: true }).click();
  const sentence = await page.locator("[data-unlearning]").first().textContent();
  const { body: retained } = await service.ask("GET", `/v1/audits/${a}/compare/${b}?question=retain`);
  check(sentence === retained.unlearning.methods[0].sentence, "what is said of forgetting is not the sentence of the API");
  await page.frameLocator("iframe").locator("h1").waitFor();
  await walk.inspect(page, `compare-retain${suffix}`);
  await page.context().close();
}

// The same on a phone in the dark.
const auditsOnPhone = (context) => audits({ ...context, view: { width: 360, height: 740, scheme: "dark" }, suffix: "-phone" });

async function reports({ page, service, id, check }) {
  const frame = page.frameLocator("iframe");
  await frame.locator("h1").waitFor();
  const width = await frame.locator("main").evaluate((element) => getComputedStyle(element).maxWidth);
  check(width !== "none", "the report has lost its style");
  check((await page.locator("iframe").getAttribute("sandbox")) === "", "the report is not in a sandbox");
  const { body: report } = await service.ask("GET", `/v1/audits/${id}/report`, undefined, { accept: "application/json" });
  const saved = async (name) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).click()]);
    return fs.readFileSync(await download.path(), "utf8");
  };
  check(/^<!DOCTYPE html>/.test(await saved("Download the page")), "the page of the report is not saved");
  check(JSON.stringify(JSON.parse(await saved("Download the JSON"))) === JSON.stringify(report), "the JSON of the report is another one");
  check((await saved("Download the scores as CSV")).split("\n").length === 1002, "the CSV has no 1,000 rows");
  const signed = await service.ask("GET", `/v1/audits/${id}/report`, undefined, { accept: "application/vnd.dsse.envelope+json" });
  const envelope = JSON.parse(await saved("Download the signed report"));
  check(JSON.stringify(envelope) === JSON.stringify(signed.body), "the signed report is another one");
  const statement = JSON.parse(Buffer.from(envelope.payload, "base64").toString());
  check(JSON.stringify(statement.predicate.report) === JSON.stringify(report), "another report is signed");
}

async function badAudits({ folder, walk, proxy, service, samples, check }) {
  const page = await walk.open(`${proxy.address}#/new-audit`, { allowed: /Failed to load resource: .* (406|409|422)/ });
  const start = async (dataset, request) => {
    const { body } = await service.ask("POST", "/v1/audits", { dataset, ...request });
    await page.goto(`${proxy.address}#/jobs/audits/${body.id}`);
    return body.id;
  };
  const hostile = samples.slice(0, 40).map(({ text, label }, index) => ({ text: `${text} ${HOSTILE}`, label, id: `${HOSTILE}${index}`, group: index % 2 ? HOSTILE.slice(0, 60) : "b" }));
  const few = await service.dataset([...hostile, { text: "word ".repeat(2000), label: 1, id: "too long" }]);
  await start(few, { methods: ["loss"], name: HOSTILE.slice(0, 150), metrics: { bootstrap: null } });
  await finished(page);
  check(/1 sample: too_long/.test(await page.locator("main").textContent()), "the sample that is excluded is not named");
  check((await page.title()) !== "owned" && (await page.locator("main script, main img").count()) === 0, "a text became markup");
  await walk.inspect(page, "audit-hostile");
  const plain = await service.dataset(samples.slice(0, 30).map(({ text }) => ({ text })));
  await start(plain, { methods: ["loss"] });
  await finished(page);
  check(/no verdict/.test(await page.locator("main").textContent()), "an audit without labels has a verdict");
  await walk.inspect(page, "audit-plain");
  await start(await service.dataset(samples.slice(0, 60)), {
    methods: [{ name: "min_k", k: Array.from({ length: 256 }, (_, index) => (index + 1) / 256) }], metrics: { bootstrap: null }, control: null,
  });
  await finished(page);
  check((await page.locator("tbody th").count()) === 256, "the table has no 256 methods");
  await walk.inspect(page, "audit-256");

  const shelf = documents(folder, samples.slice(0, 40).map(({ text }) => ({ text: `${text} ${text.toUpperCase()}` })));
  await page.goto(`${proxy.address}#/calibrations`);
  await field(page, "Folder of documents").setInputFiles(shelf);
  await page.getByText("40 documents").waitFor();
  await page.reload();
  await page.waitForSelector(".drop");
  await dropFromDisk(page, shelf);
  await page.getByText("40 documents").waitFor();
  check(/1 other file left out/.test(await page.locator("main").textContent()), "a file that is no document is not named");
  await upload(page);
  await field(page, "Name").fill("known");
  await page.getByRole("button", { name: "Start the calibration" }).click();
  await finished(page);
  check(/Smallest p-value/.test(await page.locator("main").textContent()), "the calibration shows no resolution");
  await walk.inspect(page, "calibration");
  const book = path.join(folder, "book.epub");
  fs.writeFileSync(book, epub(samples.slice(100, 110).map(({ text }) => text)));
  await page.goto(`${proxy.address}#/new-audit`);
  await page.waitForSelector(".drop");
  await dropFromDisk(page, book);
  await page.getByText("book.epub").waitFor();
  await upload(page);
  await field(page, "Known works").selectOption({ index: 1 });
  await page.getByRole("button", { name: "Start the audit" }).click();
  await finished(page);
  await page.getByRole("heading", { name: "Works" }).waitFor();
  check(/book/.test(await page.locator("tbody").first().textContent()), "the book is not among the works");
  await walk.inspect(page, "audit-works");
  await page.goto(`${proxy.address}#/calibrations`);
  await page.waitForSelector("td");
  await walk.inspect(page, "calibrations");

  // Faults of a request come with their pointers.
  await page.goto(`${proxy.address}#/new-audit`);
  await field(page, "Or a dataset that the service has").selectOption({ index: 1 });
  await field(page, "k of those that select tokens").fill("1.5");
  await page.getByRole("button", { name: "Start the audit" }).click();
  await page.getByText(/methods\/\d+\/k/).first().waitFor();
  check(/outside \(0, 1\]/.test(await page.locator("[role=alert]").first().textContent()), "the fault of the request is not shown");
  await walk.inspect(page, "new-audit-refused");
  await page.getByRole("button", { name: "Take other texts" }).click();
  check(await page.getByRole("button", { name: "Start the audit" }).isDisabled(), "an audit of earlier texts can be started");
  await drop(page, "labels.jsonl", '{"text": "a", "label": 1}\n');
  await page.waitForSelector("caption");
  const labels = await field(page, "Label column").locator("option").allTextContents();
  check(!labels.includes("none"), "a column that is read in any case can be set to none");
  await drop(page, "shelf.zip", archive([["a.txt", "One sentence. ".repeat(20)], ["b.bin", "\u0000\u0001"]]));
  await page.getByText("shelf.zip").waitFor();
  await upload(page);
  await page.getByText(/skipped 1 file/).waitFor();
  check(await page.locator("[role=group]").first().evaluate((element) => element === document.activeElement), "the focus is lost after an upload");
  await field(page, "Name").fill("kept");
  await page.getByRole("link", { name: "Jobs", exact: true }).click();
  await page.getByRole("link", { name: "New audit", exact: true }).first().click();
  await page.getByText(/1 sample/).first().waitFor();
  check((await field(page, "Name").inputValue()) === "kept", "what was entered is lost on another page");
  await page.getByRole("button", { name: "Take other texts" }).click();
  await drop(page, "broken.jsonl", '{"text": "a", "label": 1}\nnot JSON\n');
  await page.getByRole("button", { name: "Upload" }).click();
  await page.getByText(/line 2/).first().waitFor();
  await drop(page, "long.jsonl", JSON.stringify({ text: "x".repeat(1024 * 1024 - 100), label: 1 }) + "\n");
  await page.waitForSelector("caption");
  await page.locator("#more").evaluate((element) => { element.closest("details").open = true; });
  await page.fill("#more", '{"timeout_seconds":');
  await page.getByText("The further settings are not JSON").waitFor();
  await page.context().close();
}

// So many rows are never drawn; an audit of them fails in time, is cancelled, and is walked to its end.
async function manySamples({ walk, proxy, service, check }) {
  const dataset = await service.dataset(Array.from({ length: 100_000 }, (_, index) => ({ text: `nine ${index}`, id: `s${index}` })));
  const request = { dataset, methods: ["loss"], control: null };
  const page = await walk.open(proxy.address);
  const failed = await service.ask("POST", "/v1/audits", { ...request, timeout_seconds: 1 });
  await page.goto(`${proxy.address}#/jobs/audits/${failed.body.id}`);
  await finished(page, "failed");
  check(/not ended|deadline|timeout/i.test(await page.locator(".notice").textContent()), "the reason of a failure is not shown");
  await walk.inspect(page, "job-failed");
  const cancelled = await service.ask("POST", "/v1/audits", request);
  await page.goto(`${proxy.address}#/jobs/audits/${cancelled.body.id}`);
  await page.getByRole("button", { name: "Cancel the job" }).click();
  await finished(page, "cancelled");
  await walk.inspect(page, "job-cancelled");
  const { id } = await service.audit(request);
  await page.goto(`${proxy.address}#/jobs/audits/${id}`);
  await page.getByRole("region", { name: "Scores of the samples" }).locator("tbody tr").first().waitFor();
  const rows = () => page.getByRole("region", { name: "Scores of the samples" }).locator("tbody tr").count();
  check((await rows()) === 25, `${await rows()} rows are drawn`);
  const begun = Date.now();
  await field(page, "Go to the sample of index").fill("99999");
  await page.getByRole("button", { name: "Go", exact: true }).click();
  await page.getByText("s99999").waitFor();
  console.log(`the last of 100,000 samples is there after ${Date.now() - begun} ms`);
  check((await rows()) === 25, `${await rows()} rows are drawn at the end`);
  await page.getByRole("button", { name: "Previous", exact: true }).click();
  await page.getByText("s99950", { exact: true }).waitFor();
  await walk.inspect(page, "audit-100000");
  await field(page, "Go to the sample of index").fill("0");
  await page.getByRole("button", { name: "Go", exact: true }).click();
  await page.getByText("s0", { exact: true }).waitFor();
  const remove = page.getByRole("button", { name: "Delete", exact: true });
  await remove.focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Enter");
  check(await remove.isVisible(), "pressing Enter twice deletes a job");
  await remove.click();
  await page.getByRole("button", { name: "Delete it" }).click();
  await page.waitForURL(/jobs\/audits$/);
  await page.context().close();
}

module.exports = { audits, auditsOnPhone, badAudits, manySamples, drop, field, finished, upload };
