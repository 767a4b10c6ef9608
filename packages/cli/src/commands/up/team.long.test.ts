import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { testCertificate } from "@tapedeck/shared/testing/certificates";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { startCli } from "../../testing/cli.ts";
import { startUp, type TestUp } from "../../testing/up.ts";

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());
let cwd: string;
let up: TestUp;
let env: Record<string, string>;

/** Tapedeck runs as for a team: with TLS, and with tokens. */
beforeAll(async () => {
  cwd = await mkdtemp(join(inject("serversFolder"), "team-"));
  const { certFile, keyFile } = await testCertificate(cwd);
  const settings = { auth: "tokens", workspace: "acme", tls: { cert: certFile, key: keyFile } };
  await writeFile(join(cwd, "tapedeck.yaml"), JSON.stringify({ ...settings, gateway: { http: { host: "0.0.0.0" } } }));
  up = await startUp({ cwd, args: ["--no-demo"] });
  stack.defer(async () => {
    await up.stop();
  });
  const port = up.running.addresses.http?.split(":").at(-1);
  env = { ...up.env, TAPEDECK_URL: `https://localhost:${port}`, TAPEDECK_CA: certFile };
});

async function tapedeck(args: readonly string[], more: Record<string, string> = {}) {
  await using cli = startCli(args, { cwd, env: { ...env, ...more } });
  const code = await cli.ended;
  return { code, out: cli.stdout(), err: cli.stderr() };
}

it("the machine makes the first token, with which an admin makes others from elsewhere", async () => {
  const wishes = ["token", "create", "--name", "me", "--role", "admin", "-q"];
  const first = await tapedeck(wishes, { TAPEDECK_URL: "" });
  expect(first).toMatchObject({ code: 0, err: "", out: expect.stringMatching(/^tdk_\S+\n$/) });
  const TAPEDECK_TOKEN = first.out.trim();

  const dashboard = await tapedeck(["token", "create", "--name", "dashboard", "--role", "viewer"], { TAPEDECK_TOKEN });
  expect(dashboard.err).toContain("viewer in workspace acme");
  const list = await tapedeck(["token", "list"], { TAPEDECK_TOKEN });
  expect(list.out).toMatch(/dashboard\s+viewer\s+acme/);
  const [id = ""] = /^[0-9a-f]{12}(?=\s+dashboard)/m.exec(list.out) ?? [];

  const viewing = { TAPEDECK_TOKEN: dashboard.out.trim() };
  expect(await tapedeck(["status"], viewing)).toMatchObject({
    code: 0,
    out: expect.stringContaining("TLS, with tokens"),
  });
  expect((await tapedeck(["token", "list"], viewing)).err).toMatch(/role admin; this one has viewer/);
  expect((await tapedeck(["token", "revoke", id], { TAPEDECK_TOKEN })).out).toContain("revoked dashboard");
  // A gateway knows of it within a moment.
  await until(async () => /this token is unknown|revoked/.test((await tapedeck(["status"], viewing)).err), {
    message: "the revoked token to be refused",
  });
});

it("a caller without a token reads what it takes", async () => {
  expect(await tapedeck(["status"])).toMatchObject({
    code: 1,
    err: expect.stringMatching(/token is needed.*TAPEDECK_TOKEN/),
  });
  const distrusting = await tapedeck(["status"], { TAPEDECK_CA: "" });
  expect(distrusting).toMatchObject({
    code: 1,
    err: expect.stringMatching(/certificate of .* is not trusted .*TAPEDECK_CA/),
  });
});

it("its welcome says so", () => {
  const text = up.cli.stdout();
  expect(text).toMatch(/https:\/\/localhost:\d+/);
  expect(text).toContain("TLS, tokens (tapedeck token create)");
  expect(text).toContain("export TAPEDECK_TOKEN=");
});
