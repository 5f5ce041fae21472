// Bundles the page into dist/, or the tests into .tests/ with `--tests`.
import { build } from "esbuild";
import { readFileSync, readdirSync, rmSync, mkdirSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

if (process.argv.includes("--tests")) {
  rmSync(".tests", { recursive: true, force: true });
  const entryPoints = readdirSync("tests").filter((name) => name.endsWith(".ts")).map((name) => `tests/${name}`);
  await build({ entryPoints, outdir: ".tests", outExtension: { ".js": ".mjs" }, bundle: true, platform: "node", format: "esm", logLevel: "warning" });
} else {
  mkdirSync("dist", { recursive: true });
  // Its licence goes wherever copies of it go.
  const { version } = JSON.parse(readFileSync("node_modules/preact/package.json", "utf8"));
  const licence = `/*! Contains Preact ${version}.\n${readFileSync("node_modules/preact/LICENSE", "utf8")}*/`;
  await build({
    entryPoints: { app: "src/main.tsx" },
    outdir: "dist",
    bundle: true,
    minify: true,
    format: "esm",
    target: ["es2022", "chrome116", "firefox124", "safari17.4"],
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    banner: { js: licence },
    charset: "ascii",
    logLevel: "warning",
  });
  await build({ entryPoints: { app: "src/app.css" }, outdir: "dist", minify: true, target: ["chrome116", "firefox124", "safari17.4"], logLevel: "warning" });
  writeFileSync("dist/index.html", readFileSync("src/index.html"));
  const sizes = ["index.html", "app.js", "app.css"].map((name) => gzipSync(readFileSync(`dist/${name}`), { level: 9 }).length);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  console.log(`index.html, app.js, app.css: ${sizes.join(" + ")} = ${total} bytes gzipped`);
  if (total > 60_000) {
    console.error("more than 60,000 bytes");
    process.exit(1);
  }
}
