// The service under test: started, ended, and asked beside the browser.

const { execFileSync, spawn } = require("node:child_process");
const path = require("node:path");

class Service {
  constructor(program, folder, environment = {}) {
    this.program = program;
    this.folder = folder;
    this.environment = environment;
    this.child = null;
  }

  async start(...parameters) {
    const environment = { ...process.env, NO_COLOR: "1", ...this.environment };
    const child = spawn(this.program, ["serve", "--port", "0", ...parameters], { cwd: this.folder, env: environment, stdio: ["ignore", "pipe", "pipe"] });
    this.child = child;
    this.output = "";
    this.url = await new Promise((resolve, reject) => {
      const read = (part) => {
        this.output += part;
        const found = this.output.match(/listening on (http:\/\/\S+?),?\s/);
        if (found) resolve(found[1]);
      };
      child.stdout.on("data", read);
      child.stderr.on("data", read);
      child.on("exit", (code) => reject(new Error(`the service ended with ${code}: ${this.output}`)));
    });
    for (let tries = 0; tries < 300; tries++) {
      if (await fetch(`${this.url}/readyz`).then((answer) => answer.ok, () => false)) return this.url;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error(`the service is not ready: ${this.output}`);
  }

  // Ends it at once, as a crash does.
  async kill() {
    const { child } = this;
    if (!child || child.exitCode !== null) return;
    child.removeAllListeners("exit");
    const ended = new Promise((resolve) => child.on("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  key(name, scopes) {
    const parameters = ["key", "new", "--name", name, "--scopes", scopes, "--keys", path.join(this.folder, "keys.toml")];
    return execFileSync(this.program, parameters, { cwd: this.folder, stdio: ["ignore", "pipe", "ignore"] }).toString().trim();
  }

  // Has it sign reports with a new key once it starts.
  sign() {
    const file = path.join(this.folder, "report-key.pem");
    execFileSync(this.program, ["key", "new-signing", file], { stdio: ["ignore", "ignore", "ignore"] });
    this.environment = { ...this.environment, PDR_AUDIT__SIGNING__KEY_FILE: file };
  }

  async ask(method, place, body, headers = {}) {
    const json = body !== undefined && typeof body !== "string";
    const answer = await fetch(this.url + place, {
      method,
      headers: { ...(json && { "content-type": "application/json" }), ...headers },
      body: json ? JSON.stringify(body) : body,
    });
    const text = await answer.text();
    if (method === "POST" && !answer.ok) throw new Error(`${place}: ${answer.status} ${text}`);
    return { status: answer.status, body: /json/.test(answer.headers.get("content-type") || "") && !/x-ndjson/.test(answer.headers.get("content-type")) ? JSON.parse(text) : text };
  }

  async dataset(samples) {
    const lines = samples.map((sample) => JSON.stringify(sample) + "\n").join("");
    return (await this.ask("POST", "/v1/datasets", lines, { "content-type": "application/x-ndjson" })).body.id;
  }

  // Submits an audit and waits until it has ended.
  async audit(request) {
    return (await this.ask("POST", "/v1/audits", request, { prefer: "wait=600" })).body;
  }
}

module.exports = { Service };
