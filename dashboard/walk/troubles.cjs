// Keys, event streams that do not come, a service that is started again under an open page, and one without a model that works.

const fs = require("node:fs");
const path = require("node:path");
const { field, finished } = require("./auditing.cjs");
const { Service } = require("./service.cjs");

// Another service behind the proxy while `action` runs.
async function behind(context, environment, files, action) {
  const folder = fs.mkdtempSync(path.join(context.folder, "service-"));
  for (const [name, content] of Object.entries(files)) fs.writeFileSync(path.join(folder, name), content);
  const service = new Service(context.program, folder, environment(folder));
  const { target } = context.proxy;
  try {
    await action(service);
  } finally {
    context.proxy.target = target;
    await service.kill();
  }
}

async function keys(context) {
  const { walk, proxy, samples, check } = context;
  await behind(context, (folder) => ({ PDR_AUDIT__AUTH__KEYS: path.join(folder, "keys.toml") }), {}, async (service) => {
    const key = service.key("alice", "score,audit");
    const narrow = service.key("bob", "score");
    proxy.target = await service.start();
    const page = await walk.open(proxy.address, { allowed: /Failed to load resource: .* 40[139] / });
    const enter = async (value) => {
      await field(page, "Key").fill(value);
      await page.getByRole("button", { name: "Use the key" }).click();
    };
    await page.waitForSelector("dialog[open]");
    await walk.inspect(page, "key");
    await enter("pdr_\u043a\u043b\u044e\u0447");
    await page.locator("dialog [role=alert]").waitFor();
    check((await page.locator(".banner").count()) === 0, "a key that no header can carry counts as a service that is gone");
    await enter("pdr_wrong");
    await page.locator("dialog [role=alert]", { hasNotText: "ASCII" }).waitFor();
    check(/key/.test(await page.locator("dialog [role=alert]").textContent()), "a wrong key has no word");
    check((await page.locator("main [role=alert]").count()) === 0, "a request is given up while a key is asked for");
    await walk.inspect(page, "key-wrong");
    await enter(key);
    await page.waitForSelector("article");
    const dataset = (await service.ask("POST", "/v1/datasets", samples.slice(0, 120).map((sample) => JSON.stringify(sample) + "\n").join(""), { "content-type": "application/x-ndjson", authorization: `Bearer ${key}` })).body;
    const { body: audit } = await service.ask("POST", "/v1/audits", { dataset: dataset.id, methods: ["loss"] }, { authorization: `Bearer ${key}` });
    await page.goto(`${proxy.address}#/jobs/audits/${audit.id}`);
    await finished(page);
    await page.frameLocator("iframe").locator("h1").waitFor();
    // This service has keys for clients and none to sign with.
    await page.getByRole("button", { name: "Download the signed report" }).click();
    await page.getByText("The service has no key to sign with").waitFor();
    check(proxy.log.some(({ url, key: sent }) => /events$/.test(url) && sent === `Bearer ${key}`), "the event stream is asked for without the key");
    const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, document.documentElement.outerHTML]));
    check(!kept.includes(key), "the key is kept outside of the memory");
    await page.getByRole("button", { name: "Forget the key" }).click();
    await page.locator("main [role=alert]").waitFor();
    check((await page.locator("iframe").count()) === 0, "what a key has fetched outlives it");
    check((await page.locator("dialog[open]").count()) === 0, "a key is asked for right after one is forgotten");
    await page.getByRole("link", { name: "New audit" }).click();
    await page.waitForSelector("dialog[open]");
    await enter(narrow);
    await page.locator("[role=alert]").waitFor();
    check(/scope/.test(await page.locator("[role=alert]").textContent()), "a scope that is missing is not named");
    check(/request/.test(await page.locator("[role=alert]").textContent()), "the request has no id");
    await walk.inspect(page, "key-scope");
    // Without a key: the dialog is left, and the refusal is shown.
    await page.reload();
    await page.waitForSelector("dialog[open]");
    await page.keyboard.press("Escape");
    await page.locator("main [role=alert]").waitFor();
    await page.waitForTimeout(11_000);
    check((await page.locator("dialog[open]").count()) === 0, "the dialog comes back by itself");
    await page.getByRole("button", { name: "Enter a key" }).click();
    await enter(key);
    await page.waitForSelector(".drop");
    await page.context().close();
  });
}

// A list whose answers take longer than the pause between them.
async function slowList({ walk, proxy, service, check }) {
  const { body } = await service.ask("GET", "/v1/audits?limit=1");
  const page = await walk.open(proxy.address);
  let waiting = 0;
  let done = 0;
  await page.route("**/v1/audits?*", async (route) => {
    check(waiting++ === 0, "a list is asked for before its last answer");
    await new Promise((resolve) => setTimeout(resolve, 2500));
    waiting--;
    await route.fulfill({ json: { audits: [{ ...body.audits[0], status: "running", progress: { done: ++done, total: 9 } }] } }).catch(() => undefined);
  });
  await page.goto(`${proxy.address}#/jobs/audits`);
  await page.getByText("2 of 9 done").waitFor({ timeout: 15_000 });
  await page.context().close();
}

async function streams({ walk, proxy, service, check }) {
  const samples = Array.from({ length: 60_000 }, (_, index) => ({ text: `The ferry number ${index} leaves at nine.` }));
  const dataset = await service.dataset(samples);
  const page = await walk.open(proxy.address, { allowed: /Failed to load resource/ });
  for (const state of ["refuse", "silent"]) {
    proxy.setStreams(state);
    const { body: audit } = await service.ask("POST", "/v1/audits", { dataset, methods: ["loss"], control: null });
    await page.goto(`${proxy.address}#/jobs/audits/${audit.id}`);
    await page.getByText("asked for every few seconds").waitFor();
    const progress = () => page.locator("progress").first().evaluate((element) => element.value).catch(() => Infinity);
    const before = await progress();
    check((await page.locator(".banner").count()) === 0, "a stream that is missing counts as a service that is gone");
    await page.waitForFunction((old) => { const bar = document.querySelector("progress"); return !bar || bar.value > old; }, before, { timeout: 30_000 });
    if (state === "refuse") {
      proxy.setStreams("pass");
      await page.getByText("followed live").waitFor({ timeout: 30_000 });
      proxy.setStreams("silent");
    }
    if (state === "silent") await Promise.all([slowList({ walk, proxy, service, check }), page.waitForTimeout(30_000)]);
    // On a fast machine it has succeeded by now.
    await service.ask("POST", `/v1/audits/${audit.id}/cancel`).catch(() => undefined);
    await page.waitForFunction(() => /cancelled|succeeded/.test(document.querySelector(".status")?.textContent), undefined, { timeout: 30_000 });
    check(!/does not answer/.test(await page.locator("body").textContent()), "a stream that is missing counts as a service that is gone");
  }
  proxy.setStreams("pass");
  await page.context().close();
}

async function restart(context) {
  const { walk, proxy, samples, check } = context;
  await behind(context, (folder) => ({ PDR_AUDIT__STORE__URL: `sqlite://${path.join(folder, "walk.db")}` }), {}, async (service) => {
    proxy.target = await service.start();
    const many = Array.from({ length: 8000 }, (_, index) => ({ ...samples[index % 1000], text: `${samples[index % 1000].text} ${index}`, id: `s${index}` }));
    const dataset = await service.dataset(many);
    const page = await walk.open(`${proxy.address}#/score`, { allowed: /Failed to load resource/ });
    await page.waitForSelector("#text");
    const { body: audit } = await service.ask("POST", "/v1/audits", { dataset, methods: ["loss"], control: null, metrics: { bootstrap: null } });
    await page.goto(`${proxy.address}#/jobs/audits/${audit.id}`);
    await page.waitForFunction(() => document.querySelector("progress")?.value > 0);
    await service.kill();
    proxy.target = null;
    await page.getByText("The service does not answer; trying again").waitFor();
    await walk.inspect(page, "restart");
    proxy.target = await service.start();
    await page.getByText("The service does not answer; trying again").waitFor({ state: "detached" });
    await finished(page);
    await page.waitForSelector("[data-verdict]");
    check((await service.ask("GET", `/v1/audits/${audit.id}`)).body.status === "succeeded", "the audit did not survive");
    await page.context().close();
  });
}

async function noModel(context) {
  const { walk, proxy, check } = context;
  const settings = '[[models]]\nid = "absent"\nsource = "./no-such-directory"\nload = "lazy"\n';
  await behind(context, () => ({}), { "settings.toml": settings }, async (service) => {
    proxy.target = await service.start("--config", "settings.toml");
    const page = await walk.open(proxy.address, { allowed: /Failed to load resource/ });
    await page.waitForSelector("article");
    check(/unloaded|failed/.test(await page.locator(".status").first().textContent()), "the model that is absent has another state");
    await page.getByRole("button", { name: /^Load / }).click();
    await page.locator("[role=alert]").waitFor();
    await walk.inspect(page, "model-absent");
    await page.goto(`${proxy.address}#/score`);
    await page.waitForSelector("#text");
    await page.fill("#text", "A text.");
    await page.getByRole("button", { name: "Score the text" }).click();
    await page.locator("[role=alert]").waitFor();
    await walk.inspect(page, "score-refused");
    await page.context().close();
  });
}

module.exports = { keys, streams, restart, noModel };
