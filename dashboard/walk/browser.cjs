// A browser whose pages are watched: what they write to the console, what they ask for, and what axe-core and html-validate find.

const path = require("node:path");

class Browser {
  constructor(browser, axe, HtmlValidate, faults) {
    this.browser = browser;
    this.axe = axe;
    this.faults = faults;
    this.validator = new HtmlValidate({
      extends: ["html-validate:standard"],
      // The markup is what the browser makes of the elements, which has its own style.
      rules: { "attribute-boolean-style": "off", "attribute-empty-style": "off", "no-inline-style": "off", "void-style": "off", "long-title": "off", "doctype-style": "off" },
    });
    this.pictures = process.env.PICTURES;
  }

  // `allowed`: what the console may have, as where a request is to be refused.
  async open(address, { width = 1200, height = 900, scheme = "light", allowed = /^$/ } = {}) {
    const context = await this.browser.newContext({ viewport: { width, height }, colorScheme: scheme, acceptDownloads: true });
    const page = await context.newPage();
    page.on("console", (message) => {
      if (!allowed.test(message.text())) this.faults.push(`the console has: ${message.text()}`);
    });
    page.on("pageerror", (error) => this.faults.push(`a script failed: ${error}`));
    page.on("dialog", (dialog) => {
      this.faults.push(`a script of a text ran: ${dialog.message()}`);
      void dialog.dismiss();
    });
    const place = address.split("#")[0];
    context.on("request", (request) => {
      if (!request.url().startsWith(place) && !/^(blob|data):/.test(request.url())) this.faults.push(`asks for ${request.url()}`);
    });
    page.setDefaultTimeout(60_000);
    await page.goto(address);
    return page;
  }

  async inspect(page, name) {
    await this.picture(page, name);
    const fault = (text) => this.faults.push(`${name}: ${text}`);
    const overhang = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (overhang > 0) fault(`${overhang} pixels wider than the window`);
    await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
    await page.evaluate(this.axe);
    const { violations } = await page.evaluate(() => window.axe.run(document, { iframes: false }));
    for (const { id, nodes } of violations) fault(`${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
    for (const found of (await this.markupFaults(await page.content())).slice(0, 5)) fault(found);
    const stored = await page.evaluate(() => localStorage.length + sessionStorage.length + document.cookie.length);
    if (stored > 0) fault("something is stored in the browser");
  }

  async markupFaults(markup) {
    const { results } = await this.validator.validateString(markup);
    return results.flatMap(({ messages }) => messages.map(({ ruleId, message, selector }) => `${ruleId}: ${message} (${selector})`));
  }

  // The part of a frame that is in the window; the rest is not painted.
  async picture(page, name, { fullPage = true, element } = {}) {
    if (!this.pictures) return;
    const file = path.join(this.pictures, `${name}.png`);
    if (element) {
      await page.locator(element).scrollIntoViewIfNeeded();
      await page.waitForTimeout(300);
      await page.screenshot({ path: file });
    } else await page.screenshot({ path: file, fullPage });
  }
}

module.exports = { Browser };
