import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { pauseUnwatched } from "./demo-care.ts";

it("the demo pauses when nobody has watched for a while, and goes on with the next viewer", async () => {
  let lastViewer = 0;
  const gateway = createServer((_, response) => {
    response.end(`tapedeck_gateway_last_viewer_timestamp_seconds{service="gateway"} ${lastViewer}\n`);
  });
  await new Promise<void>((resolve) => gateway.listen(0, "127.0.0.1", resolve));
  const done: string[] = [];
  const stop = new AbortController();
  const watching = pauseUnwatched({
    demo: { pause: () => void done.push("pause"), resume: () => void done.push("resume") },
    http: `127.0.0.1:${(gateway.address() as AddressInfo).port}`,
    printLine: () => {},
    signal: stop.signal,
    unwatchedMs: 300,
    pollMs: 5,
  });
  await until(() => done.length === 1, { message: "the pause" });
  lastViewer = Date.now() / 1_000 + 60;
  await until(() => done.length === 2, { message: "the demo to go on" });
  expect(done).toEqual(["pause", "resume"]);
  stop.abort();
  await watching;
  await new Promise((resolve) => gateway.close(resolve));
});
