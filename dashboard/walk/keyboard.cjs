// A text scored, and an audit started, followed and read, with the keyboard alone.

const fs = require("node:fs");
const path = require("node:path");

const focused = (page) => page.evaluate(() => {
  const element = document.activeElement;
  const label = element.labels?.[0]?.textContent || element.getAttribute("aria-label") || element.textContent || "";
  const style = getComputedStyle(element);
  return { name: label.trim(), tag: element.tagName, visible: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 };
});

async function tabTo(page, check, name, tag) {
  const passed = [];
  for (let step = 0; step < 120; step++) {
    await page.keyboard.press("Tab");
    const now = await focused(page);
    passed.push(now.name.slice(0, 20));
    if (now.name.startsWith(name) && (!tag || now.tag === tag)) {
      check(now.visible, `the focus on ${name} is not seen`);
      return;
    }
  }
  throw new Error(`the keyboard does not get to ${name}: ${passed.join(" > ")}`);
}

async function keyboard({ folder, walk, proxy, samples, check }) {
  const page = await walk.open(proxy.address);
  await page.waitForSelector("article");
  await page.keyboard.press("Tab");
  check((await focused(page)).name === "Skip to the content", "the first stop does not skip to the content");
  await tabTo(page, check, "Score a text", "A");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#text");
  await page.waitForFunction(() => document.activeElement.tagName === "H1");
  await tabTo(page, check, "Text", "TEXTAREA");
  await page.keyboard.type("The brass clock struck nine in Fallowfield.");
  await page.keyboard.press("Control+Enter");
  await page.waitForSelector('.score[aria-busy="false"]');
  const before = await page.locator("[data-score]").textContent();
  await tabTo(page, check, "alpha", "INPUT");
  for (let step = 0; step < 5; step++) await page.keyboard.press("ArrowLeft");
  await page.waitForFunction((old) => document.querySelector("[data-score]").textContent !== old && document.querySelector('.score[aria-busy="false"]'), before);
  await tabTo(page, check, "Tokens", "DIV");
  await page.keyboard.press("End");
  check(/Token\s*13/.test(await page.locator(".panel").innerText()), "End does not go to the last token");
  await page.keyboard.press("ArrowLeft");
  check(/Token\s*12/.test(await page.locator(".panel").innerText()), "the arrow does not go one back");

  const file = path.join(folder, "keyboard.jsonl");
  fs.writeFileSync(file, samples.slice(0, 300).map((sample) => JSON.stringify(sample) + "\n").join(""));
  await page.keyboard.press("Control+Home");
  await page.evaluate(() => document.querySelector("h1").focus());
  for (let step = 0; step < 8 && (await focused(page)).name !== "New audit"; step++) await page.keyboard.press("Shift+Tab");
  check((await focused(page)).name === "New audit", "Shift+Tab does not go back to the pages");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".drop");
  // Waited for in good time, since the browser begins to tell of choosers only some time after it is asked to.
  const chosen = page.waitForEvent("filechooser");
  await tabTo(page, check, "Files", "INPUT");
  await page.keyboard.press("Enter");
  await (await chosen).setFiles(file);
  await page.waitForSelector("caption");
  await tabTo(page, check, "Upload", "BUTTON");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Take other texts" }).waitFor();
  await tabTo(page, check, "Start the audit", "BUTTON");
  await page.keyboard.press("Enter");
  await page.waitForSelector("[data-verdict]");
  await tabTo(page, check, "Download the JSON", "BUTTON");
  const [download] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("Enter")]);
  check(JSON.parse(fs.readFileSync(await download.path(), "utf8")) !== null, "the download is empty");
  await tabTo(page, check, "Go to the sample", "INPUT");
  await page.keyboard.type("299");
  await page.keyboard.press("Enter");
  await page.getByText("n149", { exact: true }).waitFor();
  await page.context().close();
}

module.exports = { keyboard };
