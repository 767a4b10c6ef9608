import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { startCli } from "tapedeck/testing/cli";
import { installSkaffold, recordingFolder } from "tapedeck/testing/skaffold-program";
import { startUp, type TestUp } from "tapedeck/testing/up";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { typedPage } from "./typed-page.ts";

const page = typedPage("team-server.md");
const cleanup = new AsyncDisposableStack();
let server: string;
let laptop: string;
let up: TestUp;
let env: Readonly<Record<string, string>>;

/** What is typed, for a server that is this machine and has other ports. */
function here(command: string): string {
  const http = up?.running.addresses.http?.split(":").at(-1) ?? "";
  return command
    .replace("https://tapedeck.example:7052", `https://localhost:${http}`)
    .replace("https://tapedeck.example", `https://localhost:${http}`)
    .replaceAll("tapedeck.example", "localhost");
}

/** The line of the page that begins so. */
function line(begin: string): string {
  const found = page.commands.filter((one) => one.startsWith(begin));
  expect(found, begin).toHaveLength(1);
  return here(found[0] ?? "");
}

/** Words as a shell makes them of a line, which has no other quotes. */
function wordsOf(typed: string): readonly string[] {
  return Array.from(typed.matchAll(/"([^"]*)"|(\S+)/g), ([, quoted, plain]) => quoted ?? plain ?? "");
}

async function tapedeck(begin: string, cwd: string, more: Readonly<Record<string, string>> = {}) {
  const typed = line(begin);
  await using cli = startCli(wordsOf(typed).slice(1), { cwd, env: { ...env, ...more } });
  const code = await cli.ended;
  expect({ typed, code, stderr: code === 0 ? "" : cli.stderr() }).toEqual({ typed, code: 0, stderr: "" });
  return cli.stdout();
}

/** A line that is no command of Tapedeck. */
async function shell(begin: string, cwd: string, more: Readonly<Record<string, string>> = {}) {
  const { stdout } = await promisify(execFile)("sh", ["-c", line(begin)], { cwd, env: { ...process.env, ...more } });
  return stdout;
}

beforeAll(async () => {
  const folder = await mkdtemp(join(inject("serversFolder"), "team-server-"));
  [server, laptop] = [join(folder, "server"), join(folder, "shop")];
  for (const each of [server, laptop]) mkdirSync(each);
  await shell("openssl", server);
  writeFileSync(join(server, "tapedeck.yaml"), here(page.settings));
  up = await startUp({ cwd: server, args: wordsOf(line("tapedeck up")).slice(2) });
  cleanup.defer(async () => void (await up.stop()));
  env = {
    XDG_STATE_HOME: join(folder, "state"),
    XDG_CONFIG_HOME: join(folder, "config"),
    NO_COLOR: "1",
    PATH: `${installSkaffold(join(folder, "bin"))}${delimiter}${process.env.PATH}`,
  };
});
afterAll(() => cleanup.disposeAsync());

it("the commands of the tutorial give a server that a laptop records on and a dashboard reads", async () => {
  const token = (await tapedeck(`tapedeck token create --name "Alice`, server)).trim();
  expect(token).toMatch(/^tdk_\S+$/);

  writeFileSync(join(laptop, "cert.pem"), "");
  await promisify(execFile)("cp", [join(server, "cert.pem"), laptop]);
  writeFileSync(join(laptop, "skaffold.yaml"), "metadata:\n  name: shop\n");
  const port = up.env.TAPEDECK_GRPC_PORT ?? "";
  await tapedeck("tapedeck login", laptop, { TAPEDECK_TOKEN: token, TAPEDECK_GRPC_PORT: port });
  await tapedeck("tapedeck run", laptop, {
    STAND_IN_RECORDING: recordingFolder("12-skaffold-build-one-shot"),
    STAND_IN_NOW: "1",
  });
  expect(await tapedeck("tapedeck status", laptop)).toContain("alice/shop/skaffold");
  expect(await tapedeck("tapedeck sessions", laptop)).toContain("alice/shop");
  expect(await tapedeck("tapedeck state", laptop)).toMatch(/^as of /m);

  const dashboard = (await tapedeck("tapedeck token create --name dashboard", server)).trim();
  const answer = JSON.parse(await shell("curl", server, { TAPEDECK_TOKEN: dashboard }));
  expect(answer.items).toMatchObject([{ source: "acme/alice/shop/skaffold" }]);

  const tokens = await tapedeck("tapedeck token list", server);
  for (const name of ["Alice's laptop", "dashboard"]) expect(tokens).toContain(name);
  await tapedeck("tapedeck backup", server);
});
