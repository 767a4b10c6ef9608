import { silentLogger } from "@tapedeck/shared/service/logger";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { linkLog } from "./log-link.ts";

it("gives no connection while NATS is away, and a live one when it is back", async () => {
  await using nats = await startTestNats();
  await using link = linkLog({ url: nats.url, syncAlways: true }, 1, silentLogger);
  expect(link.nats).toThrow(expect.objectContaining({ code: "not_ready" }));
  await link.opened;
  const { broken } = link.nats();
  expect(broken.aborted).toBe(false);

  await nats.kill();
  await until(() => broken.aborted, { message: "the connection to break" });
  expect(link.nats).toThrow(expect.objectContaining({ code: "not_ready" }));
  await nats.restart();
  const again = await until(() => link.nats(), { message: "NATS to be back" });
  expect(again.broken.aborted).toBe(false);
});
