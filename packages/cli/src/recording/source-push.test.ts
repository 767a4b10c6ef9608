import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { timestampNow } from "@tapedeck/shared/time/timestamp";
import { openSpill } from "@tapedeck/tap/spill/spill";
import { afterAll, expect, it } from "vitest";
import { grpcTarget } from "../grpc-target.ts";
import { startRecorder, urlOf } from "../testing/recorder.ts";
import { pushSource } from "./source-push.ts";

const root = mkdtempSync(join(tmpdir(), "tapedeck-source-push-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

it.each([true, false])("ends although what it has begun does not (in a hurry: %s)", async (isHurried) => {
  const hello = { developer: "a", project: "b", upstream: "skaffold", redact: "on", tap: "T", labels: {} } as const;
  await using spill = await openSpill({ dir: join(root, "T"), hello });
  const push = pushSource({
    target: grpcTarget("127.0.0.1:9", {}),
    home: root,
    spill,
    developer: undefined,
    printLine: () => {},
    control: () => expect.unreachable(),
    identity: new Promise(() => {}),
  });
  const stopping = new AbortController();
  const finished = push.finish(isHurried ? 2 ** 31 - 1 : 0, stopping.signal);
  if (isHurried) stopping.abort();
  expect(await finished).toBe(true);
});

it.each([true, false])(
  "tries a target that was away when something is to be pushed (it is there now: %s)",
  async (isThere) => {
    const port = await ownPort();
    const away = { why: "nothing listens", mends: true };
    const tap = `away-${isThere}`;
    const hello = { developer: "a", project: "b", upstream: "skaffold", redact: "on", tap, labels: {} } as const;
    const home = join(root, `home-${isThere}`);
    await using spill = await openSpill({ dir: join(home, tap), hello });
    const push = pushSource({
      target: grpcTarget(urlOf(`127.0.0.1:${port}`), {}),
      home,
      spill,
      away,
      developer: undefined,
      printLine: () => {},
      control: () => expect.unreachable(),
      identity: Promise.resolve(hello),
    });
    await using recorder = isThere ? await startRecorder({ port }) : undefined;
    const value = { address: "127.0.0.1:1", channels: ["v1"] };
    spill.append({ connection: "c", at: timestampNow(), what: { $case: "dialled", value } });
    // Where nothing listens, nobody waits that long.
    expect(await push.finish(2 ** 31 - 1, new AbortController().signal)).toBe(isThere);
    expect(recorder?.items.length).toBe(isThere ? 1 : undefined);
    expect(push.failure()).toEqual(isThere ? undefined : away);
  },
);
