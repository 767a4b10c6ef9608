// What `npm start`, `npm test` and the commands below need before anything is installed.
// Plain JavaScript without dependencies: it runs on the machine's own Node (20 or newer); all that follows runs on the
// Node 24 that npm installs.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bin = join(root, "node_modules", ".bin");
const node = join(bin, "node");
const windows = process.platform === "win32";
const separator = windows ? ";" : ":";

// npm puts node_modules/.bin in front of PATH; npm itself must not run on the Node that it is about to replace.
const pathOutside = (process.env.PATH ?? "")
  .split(separator)
  .filter((dir) => !dir.startsWith(join(root, "node_modules")))
  .join(separator);
const outside = { ...process.env, PATH: pathOutside };
const inside = { ...process.env, PATH: `${bin}${separator}${pathOutside}`, TURBO_TELEMETRY_DISABLED: "1" };

const fail = (sentence) => {
  console.error(sentence);
  process.exit(1);
};

/** Runs a command to its end; `output: "inherit"` shows its output, otherwise it is collected. */
const run = (command, args, { env = inside, output = "collect" } = {}) =>
  new Promise((resolve) => {
    const stdio = output === "inherit" ? "inherit" : ["ignore", "pipe", "pipe"];
    const child = spawn(command, args, { cwd: root, env, stdio, shell: windows });
    let said = "";
    const collect = (chunk) => {
      said += chunk;
    };
    child.stdout?.on("data", collect);
    child.stderr?.on("data", collect);
    child.once("error", (error) => resolve({ code: 127, said: `${error.message}\n` }));
    child.once("close", (code, signal) => resolve({ code: code ?? (signal === "SIGINT" ? 130 : 1), said }));
  });

/** Prints one line for a step that succeeds, and the whole output of one that fails. */
const step = async (title, command, args, options) => {
  process.stdout.write(`${title} … `);
  const started = performance.now();
  const { code, said } = await run(command, args, options);
  console.log(`${code === 0 ? "ok" : "failed"} (${((performance.now() - started) / 1000).toFixed(1)} s)`);
  if (code !== 0) {
    process.stderr.write(said);
    process.exit(code);
  }
};

const readJson = (path) => {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
};

const lockFile = join(root, "package-lock.json");
const stampFile = join(root, "node_modules", ".installed-from");
const lockHash = () => createHash("sha256").update(readFileSync(lockFile)).digest("hex");

const isInstalled = async () => {
  const stamped = existsSync(stampFile) && readFileSync(stampFile, "utf8") === lockHash();
  return (stamped || holdsWhatTheLockSays()) && (await run(node, ["--version"])).said.startsWith("v24.");
};

/** After an `npm install` by hand there is no stamp; but npm notes what it installed in a lock of its own, at the very end. */
const holdsWhatTheLockSays = () => {
  const installed = readJson(join(root, "node_modules", ".package-lock.json"))?.packages;
  const wanted = readJson(lockFile)?.packages;
  if (!wanted) fail("package-lock.json is missing or damaged: restore it from git.");
  if (!installed) return false;
  for (const [path, entry] of Object.entries(wanted).filter(([path]) => path.includes("node_modules/"))) {
    // A workspace of this repository has no meaningful version.
    if (entry.link && !installed[path]) return false;
    if (entry.link) continue;
    if (installed[path] ? installed[path].version !== entry.version : !entry.optional) return false;
  }
  return true;
};

/** Two at once (a start and a test on a fresh clone) must not both write node_modules, or both build the manual. */
const withInstallLock = async (install) => {
  mkdirSync(join(root, ".tapedeck"), { recursive: true });
  const lock = join(root, ".tapedeck", "install.lock");
  for (let isAnnounced = false; ; await delay(500)) {
    try {
      const file = openSync(lock, "wx");
      writeSync(file, String(process.pid));
      closeSync(file);
      break;
    } catch (error) {
      if (error.code !== "EEXIST") fail(`${lock} can't be written: ${error.message}.`);
      if (!isAlive(Number(existsSync(lock) && readFileSync(lock, "utf8")))) rmSync(lock, { force: true });
      else if (!isAnnounced)
        console.log("another process is installing packages or building the manual; waiting for it");
      isAnnounced = true;
    }
  }
  const release = () => rmSync(lock, { force: true });
  process.once("exit", release);
  await install();
  // At the exit, another process may have the lock.
  process.off("exit", release);
  release();
};

const isAlive = (pid) => {
  try {
    return pid > 0 && process.kill(pid, 0);
  } catch (error) {
    return error.code === "EPERM";
  }
};

const install = async () => {
  if (await isInstalled()) return;
  await withInstallLock(async () => {
    if (await isInstalled()) return;
    if ((await run("npm", ["--version"], { env: outside })).code !== 0) {
      fail("npm is needed and was not found: it comes with Node (https://nodejs.org).");
    }
    await step("installing packages (npm ci)", "npm", ["ci", "--no-audit", "--no-fund"], { env: outside });
    const { said } = await run(node, ["--version"]);
    if (!said.startsWith("v24.")) {
      fail("npm did not run the install script of the package `node`: allow install scripts and run npm ci again.");
    }
    writeFileSync(stampFile, lockHash());
  });
};

const prepare = async () => {
  await install();
  await step("generating code", join(bin, "turbo"), ["run", "generate", "--output-logs=errors-only"]);
  await step("building the page", join(bin, "turbo"), [
    "run",
    "build",
    "-F",
    "@tapedeck/web",
    "--output-logs=errors-only",
  ]);
  const found = await run(node, [join(root, "infra", "local", "fetch-nats-server.ts")], { output: "inherit" });
  if (found.code !== 0) process.exit(found.code);
};

/**
 * The manual as a site. Its packages take 100 MB, so they have a folder and a lock of their own, and are installed only
 * where it is built.
 */
const buildDocs = () =>
  withInstallLock(async () => {
    const site = join(root, "infra", "docs-site");
    const lock = createHash("sha256")
      .update(readFileSync(join(site, "package-lock.json")))
      .digest("hex");
    const stamp = join(site, "node_modules", ".installed-from");
    if (!existsSync(stamp) || readFileSync(stamp, "utf8") !== lock) {
      const args = ["ci", "--no-audit", "--no-fund", "--prefix", site];
      await step("installing the packages of the manual (npm ci)", "npm", args, { env: outside });
      writeFileSync(stamp, lock);
    }
    await step("building the manual", node, [join(site, "build.mjs")]);
  });

const chromiums = ["chromium", "chromium-browser", "google-chrome"];

/**
 * The browser tests need a chromium, and are skipped without one. It is installed only as root on Debian: other users
 * may not, and other systems have no such package (Ubuntu's needs snap). A failure here fails no test.
 */
const installChromium = async () => {
  const isThere = pathOutside.split(separator).some((dir) => chromiums.some((name) => existsSync(join(dir, name))));
  const refused = join(root, "node_modules", ".cache", "no-chromium");
  if (isThere || process.platform !== "linux" || process.getuid() !== 0 || !existsSync("/usr/bin/apt-get")) return;
  if (existsSync(refused)) return;
  if (!existsSync("/etc/os-release") || !/^ID=debian$/m.test(readFileSync("/etc/os-release", "utf8"))) return;
  process.stdout.write("installing chromium for the tests in a browser (apt-get install) … ");
  const started = performance.now();
  const apt = (...args) =>
    run("apt-get", ["-q", "-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=10", ...args], {
      env: { ...outside, DEBIAN_FRONTEND: "noninteractive" },
    });
  const install = () => apt("install", "-y", "--no-install-recommends", "chromium");
  let { code, said } = await install();
  if (code !== 0) {
    await apt("update");
    ({ code, said } = await install());
  }
  const took = `(${((performance.now() - started) / 1000).toFixed(1)} s)`;
  if (code === 0) console.log(`ok ${took}`);
  else {
    console.log(`not possible ${took}: ${said.trim().split("\n").at(-1)}; these tests are skipped`);
    // Not tried again until packages are installed again.
    mkdirSync(dirname(refused), { recursive: true });
    writeFileSync(refused, said);
  }
};

/** One program of all workspaces takes a third of the time that one program per workspace takes. */
const checkTypes = async () => {
  const tsc = join(bin, "tsc");
  const known = join("node_modules", ".cache", "types.tsbuildinfo");
  await step("types (tsc)", tsc, ["-p", ".", "--incremental", "--tsBuildInfoFile", known]);
  await step("types of the page (tsc)", tsc, ["-p", "packages/web"]);
  await step("types of the published client (tsc)", tsc, ["-p", "packages/client/tsconfig.build.json", "--noEmit"]);
  await step("types of the client's examples (tsc)", tsc, ["-p", "packages/client/examples"]);
};

/**
 * Runs until it ends by itself, in a process group of its own: a Ctrl-C in the terminal comes to npm and to us, npm
 * passes its one on as well, and the command must see one.
 */
const become = (command, args) => {
  const child = spawn(command, args, { cwd: root, env: inside, stdio: "inherit", detached: !windows });
  const ECHO_MS = 300;
  const last = {};
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => {
      const now = performance.now();
      if (now - (last[signal] ?? -ECHO_MS) >= ECHO_MS) child.kill(signal);
      last[signal] = now;
    });
  }
  child.once("error", (error) => fail(`${command} can't be started: ${error.message}.`));
  child.once("exit", (code, signal) => {
    if (signal === null) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
};

const vitest = (args) => become(node, [join(root, "node_modules", "vitest", "vitest.mjs"), "run", ...args]);

/** npm takes the flag of `npm start --no-demo` for a setting of its own, which it passes on as a variable. */
const flagsTakenByNpm = () => {
  const { npm_config_demo: demo } = process.env;
  if (demo === undefined) return [];
  return [["", "false"].includes(demo) ? "--no-demo" : "--demo"];
};

const commands = {
  start: async (args) => {
    await prepare();
    become(node, [join(root, "packages", "cli", "src", "main.ts"), "up", ...flagsTakenByNpm(), ...args]);
  },
  check: async () => {
    await prepare();
    await checkTypes();
  },
  test: async (args) => {
    await prepare();
    await installChromium();
    await step("lint (biome)", join(bin, "biome"), ["check", "--colors=off", "."]);
    await checkTypes();
    console.log("tests (vitest)");
    vitest(args.includes("--project") ? args : ["--project", "short", ...args]);
  },
  "test:long": async (args) => {
    await prepare();
    await installChromium();
    console.log("long tests (vitest)");
    vitest(["--project", "long", ...args]);
  },
  "test:nightly": async (args) => {
    await prepare();
    await installChromium();
    console.log("all tests, with searches at length (vitest)");
    vitest(["--mode", "nightly", "--project", "short", "--project", "long", ...args]);
  },
  fixture: async ([release = "", ...args]) => {
    if (!/^[\w.-]+$/.test(release)) fail("usage: npm run fixture -- <name of the release>");
    await prepare();
    inside.RELEASE_FIXTURE = release;
    vitest(["--project", "long", "test/operations/release-fixture.long.test.ts", ...args]);
  },
  "test:cluster": async (args) => {
    await prepare();
    console.log("a cluster and its faults (vitest)");
    vitest(["--project", "cluster", ...args]);
  },
  "docs:build": async () => {
    await install();
    await buildDocs();
  },
  dist: async (args) => {
    await prepare();
    await buildDocs();
    become(node, [join(root, "infra", "dist", "main.ts"), ...args]);
  },
  release: async (args) => {
    await prepare();
    await buildDocs();
    become(node, [join(root, "infra", "dist", "release.ts"), ...args]);
  },
  bench: async (args) => {
    await prepare();
    become(node, [join(root, "test", "bench", "main.ts"), ...args]);
  },
};

const [name, ...args] = process.argv.slice(2);
if (Number.parseInt(process.versions.node, 10) < 20) {
  fail(`Node 20 or newer is needed, and this is ${process.versions.node}: get one from https://nodejs.org.`);
}
const command = commands[name];
if (!command) fail(`usage: node infra/bootstrap.mjs ${Object.keys(commands).join("|")} [arguments]`);
await command(args);
