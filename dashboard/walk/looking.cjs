// Every page as it looks: at 360 pixels in the dark, and at 1,200 in the light.

const { score, slide } = require("./scoring.cjs");

async function looks({ walk, proxy, service, samples, check }) {
  const dataset = await service.dataset(samples.slice(0, 200));
  const first = await service.audit({ dataset, methods: ["loss", "min_k_plus_plus"], name: "200 samples" });
  const second = await service.audit({ dataset, methods: ["loss", "min_k_plus_plus"], model: "demo-reference" });
  const known = await service.dataset(samples.filter(({ label }) => label === 0).slice(0, 60).map(({ text }) => ({ text })));
  const calibration = (await service.ask("POST", "/v1/calibrations", { dataset: known, methods: ["loss"], name: "60 texts" }, { prefer: "wait=60" })).body;
  const texts = (label) => samples.filter((sample) => sample.label === label).slice(0, 40).map(({ text }) => ({ text }));
  const test = (await service.ask("POST", "/v1/tests", { kind: "dataset", suspects: texts(1), held_out: texts(0), methods: ["loss"] }, { prefer: "wait=60" })).body;
  const memorization = (await service.ask("POST", "/v1/memorization", { texts: texts(1).slice(0, 10), prefix: 16, suffix: 8 }, { prefer: "wait=60" })).body;
  const places = {
    test: `jobs/tests/${test.id}`, memorization: `jobs/memorization/${memorization.id}`,
    models: "models", score: "score", "new-audit": "new-audit", jobs: "jobs/audits", "jobs-tests": "jobs/tests", audit: `jobs/audits/${first.id}`,
    compare: `compare/${first.id}/${second.id}`, calibrations: "calibrations", calibration: `jobs/calibrations/${calibration.id}`, unknown: "nowhere",
  };
  for (const [width, height, scheme] of [[1200, 900, "light"], [360, 740, "dark"]]) {
    const page = await walk.open(proxy.address, { width, height, scheme });
    for (const [name, place] of Object.entries(places)) {
      await page.goto(`${proxy.address}#/${place}`);
      await page.waitForFunction(() => !/Loading \u2026/.test(document.querySelector("main").textContent));
      if (name === "score") {
        await page.waitForSelector("#text");
        await score(page, samples.slice(0, 3).map(({ text }) => text).join(" "));
        await slide(page, "alpha", 0.6);
        for (const view of ["lp", "z", "weight", "contribution"]) {
          await page.getByRole("radio", { name: view, exact: true }).check();
          await walk.inspect(page, `score-${view}-${width}`);
        }
        await page.locator(".tokens").focus();
        for (let step = 0; step < 18; step++) await page.keyboard.press("ArrowRight");
      }
      if (["audit", "compare", "test", "memorization"].includes(name)) await page.frameLocator("iframe").locator("h1").waitFor();
      check((await page.locator("h1").count()) === 1, `${name} has another number of first headings than one`);
      await walk.inspect(page, `${name}-${width}`);
      if (name === "audit") await walk.picture(page, `report-${width}`, { element: "iframe" });
      if (width === 1200 && (name === "score" || name === "audit")) {
        await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = false; }));
        await page.setViewportSize({ width: 1100, height: name === "score" ? 1080 : 900 });
        await page.evaluate(() => scrollTo(0, 0));
        await walk.picture(page, `dashboard-${name}`, { fullPage: false });
        await page.setViewportSize({ width, height });
      }
    }
    await page.context().close();
  }
}

module.exports = { looks };
