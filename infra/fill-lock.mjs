// Completes package-lock.json after `npm install` from a registry that lacks some platforms' packages (a partial mirror):
// npm leaves out of the lock what it can't find, and `npm ci` of npm 11 and later then refuses the lock.
// Usage: node infra/fill-lock.mjs
import { readFileSync, writeFileSync } from "node:fs";

const FILE = new URL("../package-lock.json", import.meta.url);
const OS = {
  android: "android",
  darwin: "darwin",
  freebsd: "freebsd",
  linux: "linux",
  openharmony: "openharmony",
  wasm32: "wasm",
  win32: "win32",
  windows: "win32",
};
const CPU = {
  64: "x64",
  aarch64: "arm64",
  arm: "arm",
  arm64: "arm64",
  armv7: "arm",
  gnueabihf: "arm",
  ia32: "ia32",
  ppc64: "ppc64",
  wasm32: "wasm32",
  x64: "x64",
};

const lock = JSON.parse(readFileSync(FILE, "utf8"));
const packages = lock.packages;

/** Where the package at `path` finds its dependency `name` in the lock, looking outwards as Node does. */
const resolves = (path, name) => {
  for (let at = path; ; at = at.slice(0, Math.max(0, at.lastIndexOf("/node_modules/")))) {
    if (packages[`${at === "" ? "" : `${at}/`}node_modules/${name}`]) return true;
    if (at === "") return false;
  }
};

let added = 0;
for (const [path, entry] of Object.entries({ ...packages })) {
  for (const [name, range] of Object.entries(entry.optionalDependencies ?? {})) {
    if (resolves(path, name)) continue;
    const parts = name.split(/[-/]/);
    const os = parts.map((part) => OS[part]).find(Boolean);
    const cpu = parts.map((part) => CPU[part]).find(Boolean);
    const version = /^\^?(\d.*)$/.exec(range)?.[1];
    if (!os || !cpu || !version) throw new Error(`can't tell version and platform of ${name}@${range}`);
    packages[`node_modules/${name}`] = {
      version,
      cpu: [cpu],
      ...(entry.dev && { dev: true }),
      ...(name.endsWith("musl") && { libc: ["musl"] }),
      optional: true,
      os: [os],
    };
    added += 1;
  }
}
lock.packages = Object.fromEntries(Object.entries(packages).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
writeFileSync(FILE, `${JSON.stringify(lock, null, 2)}\n`);
console.log(`${added} optional packages added to package-lock.json`);
