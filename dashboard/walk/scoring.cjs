// Open, score a text, move alpha: the number is the API's, and costs no forward pass.

const zlib = require("node:zlib");
const { HOSTILE } = require("./inputs.cjs");

async function opens({ walk, proxy, check }) {
  let best = Infinity;
  for (let turn = 0; turn < 5; turn++) {
    const page = await walk.open(proxy.address);
    await page.waitForSelector("article");
    best = Math.min(best, await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime));
    await page.context().close();
  }
  console.log(`first contentful paint, the best of five: ${best.toFixed(0)} ms`);
  check(best < 100, `the first contentful paint takes ${best} ms`);
  const answer = await fetch(proxy.address, { headers: { accept: "text/html" } });
  const policy = answer.headers.get("content-security-policy") || "";
  for (const fault of await walk.markupFaults(await answer.text())) check(false, `the page as it is sent: ${fault}`);
  let size = 0;
  for (const file of ["", "dashboard/app.js", "dashboard/app.css"]) {
    const sent = await fetch(proxy.address + file, { headers: { accept: "text/html, */*" } });
    size += zlib.gzipSync(Buffer.from(await sent.arrayBuffer()), { level: 9 }).length;
  }
  console.log(`page, script and style: ${size} bytes gzipped`);
  check(size <= 60_000, `page, script and style have ${size} bytes gzipped`);
  check(/default-src 'none'/.test(policy) && /script-src 'self'/.test(policy) && !/unsafe/.test(policy), `the policy of the page is ${policy}`);
}

async function score(page, text) {
  await page.evaluate((value) => {
    const field = document.querySelector("#text");
    Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(field, value);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }, text);
  await page.getByRole("button", { name: "Score the text" }).click();
  await page.waitForSelector('.score[aria-busy="false"]');
}

// Sets the slider as a hand does that drags it, and waits for the number of the service.
async function slide(page, label, value) {
  const slider = page.getByRole("slider", { name: label, exact: true });
  await slider.evaluate((element, to) => {
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(element, to);
    element.dispatchEvent(new Event("input", { bubbles: true }));
  }, String(value));
  await page.waitForSelector('.score[aria-busy="false"]');
}

const shown = (page) => page.locator("[data-score]").textContent();

async function scores({ walk, proxy, service, check }) {
  const page = await walk.open(`${proxy.address}#/score`);
  await page.waitForSelector("#text");
  await walk.picture(page, "score-empty");
  await score(page, `The brass clock struck nine in Fallowfield. ${HOSTILE}`);
  const tokens = await page.locator(".tokens .token").count();
  const api = async (text, alpha, k, details) => (await service.ask("POST", "/v1/score", {
    inputs: text, overflow: "window", details, methods: [{ name: "min_k_plus_plus", k, pdr: { decay: "linear", alpha } }],
  })).body.results[0];
  const direct = await api(`The brass clock struck nine in Fallowfield. ${HOSTILE}`, 1, 0.2, ["tokens"]);
  check(tokens === direct.tokens.length, `${tokens} tokens are shown of ${direct.tokens.length}`);
  check(await page.title() !== "owned", "a script of the text ran");
  for (const [label, value, alpha, k] of [["alpha", 0.37, 0.37, 0.2], ["alpha", 0, 0, 0.2], ["k", 0.55, 0, 0.55], ["alpha", 0.81, 0.81, 0.55]]) {
    await slide(page, label, value);
    const { scores } = await api(`The brass clock struck nine in Fallowfield. ${HOSTILE}`, alpha, k, []);
    const [number] = Object.values(scores);
    check((await shown(page)) === String(number), `at alpha ${alpha} and k ${k} the page shows ${await shown(page)}, and the API gives ${number}`);
    check(/^0 forward passes/.test(await page.locator(".score .faint").textContent()), "a slider costs a forward pass");
  }
  // The last of several values wins.
  const slider = page.getByRole("slider", { name: "alpha", exact: true });
  await slider.focus();
  for (let step = 0; step < 12; step++) await page.keyboard.press("ArrowLeft");
  await page.waitForSelector('.score[aria-busy="false"]');
  const { scores: last } = await api(`The brass clock struck nine in Fallowfield. ${HOSTILE}`, 0.69, 0.55, []);
  check((await shown(page)) === String(Object.values(last)[0]), "the last value of the slider does not win");
  for (const view of ["lp", "z", "weight", "contribution"]) await page.getByRole("radio", { name: view, exact: true }).check();
  await walk.inspect(page, "score");
  for (const method of ["loss", "zlib", "ref", "gap_k", "max_k"]) {
    await page.getByRole("combobox", { name: "Method", exact: true }).selectOption(method);
    await page.waitForTimeout(150);
    await page.waitForSelector('.score[aria-busy="false"]');
    const number = await shown(page);
    const { scores: answered } = (await service.ask("POST", "/v1/score", { inputs: `The brass clock struck nine in Fallowfield. ${HOSTILE}`, overflow: "window",
      methods: [{ name: method, ...(/_k$/.test(method) && { k: Number(await page.getByRole("spinbutton", { name: "k, exact" }).inputValue()) }), ...(method !== "gap_k" && { pdr: { decay: "linear", alpha: 0.69 } }) }] })).body.results[0];
    check(Object.values(answered).some((value) => String(value) === number), `${method}: the page shows ${number}, and the API gives ${JSON.stringify(answered)}`);
  }
  await page.context().close();
}

// The number is never that of other settings: where a slider goes there and back, where an answer is late, and where there is none.
async function settings({ walk, proxy, service, check }) {
  const page = await walk.open(`${proxy.address}#/score`, { allowed: /Failed to load resource: .* 503/ });
  await page.waitForSelector("#text");
  const text = "The brass clock struck nine in Fallowfield.";
  await score(page, text);
  const api = async (alpha, k) => String(Object.values((await service.ask("POST", "/v1/score", {
    inputs: text, methods: [{ name: "min_k_plus_plus", k, pdr: { decay: "linear", alpha } }],
  })).body.results[0].scores)[0]);
  const drag = (value) => page.getByRole("slider", { name: "alpha", exact: true }).evaluate((element, to) => {
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(element, to);
    element.dispatchEvent(new Event("input", { bubbles: true }));
  }, String(value));
  const settled = () => page.waitForSelector('.score[aria-busy="false"] .number:not(.pending)', { timeout: 5000 });
  const is = async (alpha, k, when) => check((await shown(page)) === (await api(alpha, k)) && !(await page.locator(".number.pending").count()), `${when} the page shows ${await shown(page)}`);
  await drag(0.5);
  await drag(1);
  await settled();
  await is(1, 0.2, "after there and back");
  await page.route("**/v1/score", async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 600));
    await route.continue().catch(() => undefined);
  });
  await drag(0.3);
  await page.waitForTimeout(300);
  await drag(1);
  await settled();
  await page.waitForTimeout(700);
  await is(1, 0.2, "after a late answer of other settings");
  await page.unroute("**/v1/score");
  await page.route("**/v1/score", (route) => route.fulfill({ status: 503, body: "" }));
  await drag(0.4);
  await page.locator("main [role=alert]").waitFor();
  check((await page.locator(".number.pending").count()) === 1, "a number of earlier settings is not marked after a failure");
  await walk.inspect(page, "score-failed");
  await page.unroute("**/v1/score");
  await drag(0.6);
  await settled();
  await is(0.6, 0.2, "after a failure");
  const exact = page.getByRole("spinbutton", { name: "k, exact" });
  await exact.fill("");
  await exact.pressSequentially("0.05", { delay: 200 });
  await settled();
  check((await exact.inputValue()) === "0.05", `0.05 typed becomes ${await exact.inputValue()}`);
  await is(0.6, 0.05, "after 0.05 is typed");
  await score(page, "Half of an emoji: \ud83d");
  check((await page.locator("main [role=alert]").count()) === 0, "half a character is refused");
  await page.context().close();
}

async function redraws({ walk, proxy, samples, check }) {
  const page = await walk.open(`${proxy.address}#/score`);
  await page.waitForSelector("#text");
  await score(page, samples.slice(0, 12).map(({ text }) => text).join(" ").slice(0, 2000));
  const count = await page.locator(".tokens .token").count();
  await page.evaluate(async () => {
    const slider = document.querySelector("input[type=range]");
    const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
    window.times = [];
    for (let step = 0; step < 40; step++) {
      await new Promise(requestAnimationFrame);
      const begun = performance.now();
      set.call(slider, String(1 - step / 40));
      slider.dispatchEvent(new Event("input", { bubbles: true }));
      await Promise.resolve().then(() => undefined).then(() => undefined);
      document.body.getBoundingClientRect();
      window.times.push(performance.now() - begun);
    }
  });
  const times = (await page.evaluate(() => window.times)).sort((a, b) => a - b);
  console.log(`${count} tokens are redrawn in ${times[20].toFixed(1)} ms (median of 40), at most ${times.at(-1).toFixed(1)} ms`);
  check(count >= 500, `only ${count} tokens are redrawn`);
  check(times[20] < 16, `the tokens take ${times[20]} ms`);
  await page.context().close();
}

async function longLine({ walk, proxy, check }) {
  const page = await walk.open(`${proxy.address}#/score`);
  await page.waitForSelector("#text");
  await score(page, "The ferry leaves at nine. ".repeat(2400).slice(0, 60_000));
  const drawn = await page.locator(".tokens .token").count();
  check(drawn === 2000, `${drawn} tokens are drawn at once`);
  await page.getByRole("button", { name: "Next tokens" }).click();
  check(/2,001 to/.test(await page.locator(".strip, main").first().textContent()), "the next tokens do not come");
  await page.locator(".tokens").focus();
  await page.keyboard.press("End");
  const seen = await page.locator(".tokens").evaluate((list) => list.querySelector('[aria-selected="true"]').getBoundingClientRect().bottom <= list.getBoundingClientRect().bottom);
  check(seen, "End does not bring the last token into view");
  await score(page, "x".repeat(1024 * 1024));
  const text = await page.locator("main").textContent();
  check(/scored tokens|too_long|status \d/i.test(text), "1 MiB in one line has no answer");
  await page.context().close();
}

module.exports = { opens, scores, settings, redraws, longLine, score, slide, shown };
