import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testCertificate } from "@tapedeck/shared/testing/certificates";
import { until } from "@tapedeck/shared/testing/until";
import { openTokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken } from "@tapedeck/shared/tokens/token";
import { connect as connectNats } from "nats";
import { type RunningCli, startCli } from "tapedeck/testing/cli";
import { expect, it } from "vitest";
import { startLiveHarness } from "./live-harness.ts";

it("`tapedeck tail` reads a team's Tapedeck over TLS with a token, across a restart, until the token is revoked", async () => {
  await using cleanup = new AsyncDisposableStack();
  const cwd = await mkdtemp(join(tmpdir(), "tapedeck-tail-"));
  cleanup.defer(() => rm(cwd, { recursive: true }));
  const { certFile, keyFile } = await testCertificate(cwd);
  const settings = { TAPEDECK_AUTH: "tokens", TAPEDECK_TLS_CERT: certFile, TAPEDECK_TLS_KEY: keyFile };
  const harness = cleanup.use(await startLiveHarness(settings));
  const nats = cleanup.adopt(await connectNats({ servers: harness.seeded.stack.parts.nats.url }), (nc) => nc.close());
  const tokens = await openTokenStore(nats);
  const made = makeToken({ name: "a harness", workspace: "acme", roles: ["viewer"], lifetimeMs: 3_600_000 });
  await tokens.create(made);
  const url = harness.url.replace("http://127.0.0.1", "https://localhost");
  const env = { TAPEDECK_URL: url, TAPEDECK_CA: certFile, TAPEDECK_TOKEN: made.text };
  const tail = (...more: string[]) => cleanup.use(startCli(["tail", "-k", "build.*", "--json", ...more], { cwd, env }));
  const idsIn = (cli: RunningCli) =>
    cli
      .stdout()
      .split("\n")
      .slice(0, -1)
      .map((line) => (JSON.parse(line) as { id: string }).id);

  const writer = harness.writer("alice");
  const built = [...(await writer.builds(20))];
  const following = tail("--last", "5");
  await until(() => idsIn(following).length === 5, { message: "the last five" });
  built.push(...(await writer.builds(3)));
  await until(() => idsIn(following).length === 8, { message: "what happens" });
  await harness.stop();
  built.push(...(await writer.builds(3)));
  await harness.start();
  await until(() => idsIn(following).length === 11, { message: "what happened meanwhile" });
  const ids = built.map(({ id }) => id);
  expect(idsIn(following)).toEqual(ids.slice(-11));

  const all = tail("--after", "start", "--no-follow");
  expect([await all.ended, all.stderr()]).toEqual([0, ""]);
  expect(idsIn(all)).toEqual(ids);

  const wrong = tail("--after", "lunch");
  expect([await wrong.ended, wrong.stderr()]).toEqual([1, expect.stringContaining("argument 'lunch' is invalid")]);
  await tokens.revoke(made.record.id);
  expect([await following.ended, following.stderr()]).toEqual([1, expect.stringContaining("revoked")]);
});
