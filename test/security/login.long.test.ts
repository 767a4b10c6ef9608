import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { testCertificate } from "@tapedeck/shared/testing/certificates";
import { openTokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken, type Role } from "@tapedeck/shared/tokens/token";
import { version } from "@tapedeck/shared/version";
import { connect } from "nats";
import { startCli } from "tapedeck/testing/cli";
import { installSkaffold, recordingFolder } from "tapedeck/testing/skaffold-program";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Stack, startStack } from "../stack/stack.ts";

// One login instead of variables: on a laptop, with a team's Tapedeck on any two ports.

const folder = mkdtempSync(join(tmpdir(), "login-"));
const cleanup = new AsyncDisposableStack();
let stack: Stack;
let certFile: string;
let url: string;
const tokens: Record<string, string> = {};

beforeAll(async () => {
  const certificate = await testCertificate(folder);
  certFile = certificate.certFile;
  const tls = { TAPEDECK_TLS_CERT: certFile, TAPEDECK_TLS_KEY: certificate.keyFile };
  stack = cleanup.use(await startStack({ env: { TAPEDECK_AUTH: "tokens", ...tls } }));
  url = `https://localhost:${stack.http.split(":").at(-1)}`;
  const nats = cleanup.adopt(await connect({ servers: stack.parts.nats.url }), (nc) => nc.close());
  const store = await openTokenStore(nats);
  for (const role of ["recorder", "viewer"] satisfies Role[]) {
    const wishes = { name: `a ${role}`, workspace: "acme", developer: "dora", lifetimeMs: 3_600_000 };
    const made = makeToken({ ...wishes, roles: [role] });
    await store.create(made);
    tokens[role] = made.text;
  }
});
afterAll(async () => {
  await cleanup.disposeAsync();
  rmSync(folder, { recursive: true, force: true });
});

async function tapedeck(args: readonly string[], env: Record<string, string> = {}) {
  await using cli = startCli(args, { cwd: folder, env: { XDG_STATE_HOME: join(folder, "state"), ...env } });
  return { code: await cli.ended, out: cli.stdout(), err: cli.stderr() };
}

const kept = () => join(folder, "config", "tapedeck", "contexts.json");

it("/about names the gRPC address to everyone, and a token's roles to its bearer", async () => {
  const about = async (authorization?: string) => {
    const headers = authorization === undefined ? {} : { authorization };
    const call = request(`${url}/about`, { ca: readFileSync(certFile), headers }).end();
    const [answer] = await once(call, "response");
    // The manual is there once it was built.
    const { docs, ...body } = (await json(answer)) as Readonly<Record<string, unknown>>;
    return [answer.statusCode, body];
  };
  const grpcPort = Number(stack.grpc.split(":").at(-1));
  const privacy = { developers: "shown", compareDevelopers: true };
  const open = { version, grpcPort, auth: "tokens", privacy, time: expect.any(String) };
  expect(await about()).toEqual([200, open]);
  const token = { name: "a recorder", workspace: "acme", roles: ["recorder"], developer: "dora" };
  expect(await about(`Bearer ${tokens.recorder}`)).toEqual([200, { ...open, token }]);
  expect(await about("Bearer tdk_wrong")).toMatchObject([401, { error: { code: "unauthenticated" } }]);
});

it("says that a server may want TLS where it closes a plaintext connection", async () => {
  const plain = url.replace("https:", "http:");
  const closes = `the server at ${plain} closes the connection, as a TLS server does`;
  expect(await tapedeck(["status", "--url", plain])).toEqual({
    code: 1,
    out: "",
    err: `tapedeck: ${closes}: give its https address with --url or \`tapedeck login\`.\n`,
  });
  const { out } = await tapedeck(["doctor", "--url", plain]);
  expect(out).toContain(closes);
  expect(out).toContain("→ give its address with --url, TAPEDECK_URL or `tapedeck login`: https://…");
});

it("a login with a refused token, or without a trusted certificate, stores nothing", async () => {
  const ca = { TAPEDECK_CA: certFile };
  expect(await tapedeck(["login", url], { ...ca, TAPEDECK_TOKEN: "tdk_wrong" })).toMatchObject({
    code: 1,
    err: expect.stringContaining(`${url} does not accept this token`),
  });
  expect(await tapedeck(["login", url], { TAPEDECK_TOKEN: tokens.viewer ?? "" })).toMatchObject({
    code: 1,
    err: expect.stringMatching(
      /^tapedeck: the certificate of https:\S+ is not trusted \([^;)]+\): give the PEM file of its authority \(--ca\)/,
    ),
  });
  expect(await tapedeck(["doctor", "--url", url])).toMatchObject({
    code: 1,
    out: expect.stringMatching(
      /the certificate of https:\S+ is not trusted \([^;)]+\)\n\s+→ set TAPEDECK_CA to the PEM/,
    ),
  });
  expect((await tapedeck(["login", url, "--ca", "/nope.pem"], ca)).err).toBe(
    "tapedeck: /nope.pem (--ca) can't be read.\n",
  );
  expect((await tapedeck(["status"], { TAPEDECK_URL: url, TAPEDECK_CA: "/nope.pem" })).err).toContain(
    "/nope.pem (TAPEDECK_CA) can't be read.",
  );
  expect((await tapedeck(["login", url], ca)).err).toContain(
    "requires a token: type it, pipe it in, or set TAPEDECK_TOKEN",
  );
  expect(() => statSync(kept())).toThrow("ENOENT");
});

it("after a login every command uses its address and token: recording, reading, and files", async () => {
  const login = await tapedeck(["login", url, "--ca", certFile, "--name", "team"], {
    TAPEDECK_TOKEN: tokens.recorder ?? "",
  });
  expect(login).toMatchObject({ code: 0, err: "" });
  expect(login.out).toContain(`logged in to ${url}, as a recorder (recorder) in workspace acme`);
  expect(login.out).not.toContain(tokens.recorder);
  expect(statSync(kept()).mode & 0o777).toBe(0o600);
  expect(JSON.parse(readFileSync(kept(), "utf8"))).toEqual({
    current: "team",
    contexts: { team: { url, grpcPort: Number(stack.grpc.split(":").at(-1)), token: tokens.recorder, ca: certFile } },
  });

  const program = {
    PATH: installSkaffold(join(folder, "bin")),
    STAND_IN_RECORDING: recordingFolder("12-skaffold-build-one-shot"),
  };
  const run = await tapedeck(["run", "--project", "shop", "--", "skaffold", "build"], program);
  expect(run.code).toBe(0);
  expect(run.err).not.toMatch(/not recorded/);
  expect((await tapedeck(["sessions"])).err).toMatch(/role viewer; this one has recorder/);

  await tapedeck(["login", url, "--ca", certFile, "--name", "reader"], { TAPEDECK_TOKEN: tokens.viewer ?? "" });
  const sessions = await tapedeck(["sessions", "-s", "dora/shop"]);
  expect(sessions).toMatchObject({ code: 0, err: "", out: expect.stringContaining("dora/shop") });
  const exported = await tapedeck(["export", "-s", "dora/shop", "-o", "shop.tapedeck"]);
  expect(exported).toMatchObject({ code: 0, out: expect.stringContaining("of dora/shop") });

  expect((await tapedeck(["context", "use", "team"])).out).toContain(url);
  const { items } = JSON.parse((await tapedeck(["context", "list", "--json"])).out);
  expect(items).toEqual([
    { name: "local", url: "", hasToken: false, current: false },
    { name: "team", url, hasToken: true, current: true },
    { name: "reader", url, hasToken: true, current: false },
  ]);
  expect((await tapedeck(["logout"])).out).toContain(
    "removed team; commands now use the Tapedeck server on this machine",
  );
  expect((await tapedeck(["logout", "--all"])).code).toBe(0);
  expect(readFileSync(kept(), "utf8")).not.toContain("tdk_");
  expect((await tapedeck(["logout"])).err).toBe("tapedeck: you are not logged in: see `tapedeck context`.\n");
});
