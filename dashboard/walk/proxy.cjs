// A reverse proxy in front of the service: below a prefix, without event streams while it is told so, and with the files of the page
// where the environment variable DIST names their folder.

const crypto = require("node:crypto");
const fs = require("node:fs");
const http = require("node:http");
const path = require("node:path");

const FILES = { "/": ["index.html", "text/html; charset=utf-8"], "/dashboard/app.js": ["app.js", "text/javascript; charset=utf-8"], "/dashboard/app.css": ["app.css", "text/css; charset=utf-8"] };

// The page of a report has its style within. A document of a `blob:` address keeps to the policy of the page that made it.
function policy(root) {
  const style = fs.readFileSync(path.join(root, "crates/pages/src/style.css"));
  const hash = crypto.createHash("sha256").update(style).digest("base64");
  return `default-src 'none'; script-src 'self'; style-src 'self' 'sha256-${hash}'; connect-src 'self'; img-src data:; frame-src blob:; ` +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
}

class Proxy {
  constructor(root, prefix) {
    this.prefix = prefix;
    this.policy = policy(root);
    this.dist = process.env.DIST && path.resolve(process.env.DIST);
    this.target = null;
    this.streams = "pass";
    this.log = [];
    // The last body of a plan, so that the walk can send the same.
    this.bodies = {};
    this.open = new Set();
    this.server = http.createServer((request, response) => this.serve(request, response));
  }

  async listen() {
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    this.address = `http://127.0.0.1:${this.server.address().port}${this.prefix}/`;
    return this.address;
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }

  // "pass"; "refuse": event streams are answered with 502, and those that are open end; "silent": they are never answered.
  setStreams(state) {
    this.streams = state;
    if (state !== "pass") for (const response of this.open) response.destroy();
  }

  serve(request, response) {
    if (!request.url.startsWith(`${this.prefix}/`)) {
      this.log.push({ outside: true, url: request.url });
      response.writeHead(404).end();
      return;
    }
    const url = request.url.slice(this.prefix.length);
    this.log.push({ method: request.method, url, key: request.headers.authorization });
    const [name, type] = (this.dist && request.method === "GET" && FILES[url]) || [];
    if (name && (url !== "/" || /text\/html/.test(request.headers.accept))) {
      response.writeHead(200, { "content-type": type, "content-security-policy": this.policy, "x-content-type-options": "nosniff", "cache-control": "no-cache" });
      response.end(fs.readFileSync(path.join(this.dist, name)));
      return;
    }
    const isStream = /\/events$/.test(url);
    if (isStream && this.streams === "refuse") return void response.writeHead(502).end();
    if (isStream && this.streams === "silent") return;
    if (!this.target) return void response.writeHead(502).end();
    const { hostname, port } = new URL(this.target);
    const headers = { ...request.headers };
    // The host is kept, since the service compares it with the origin of the page.
    const onward = http.request({ hostname, port, path: url, method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      response.flushHeaders();
      answer.pipe(response);
      if (isStream) {
        this.open.add(response);
        response.on("close", () => this.open.delete(response));
      }
    });
    onward.on("error", () => (response.headersSent ? response.destroy() : response.writeHead(502).end()));
    response.on("close", () => onward.destroy());
    if (url === "/v1/plans") {
      this.bodies.plan = "";
      request.on("data", (data) => { this.bodies.plan += data; });
    }
    request.pipe(onward);
  }
}

module.exports = { Proxy };
