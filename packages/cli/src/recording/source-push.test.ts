import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSpill } from "@tapedeck/tap/spill/spill";
import { afterAll, expect, it } from "vitest";
import { grpcTarget } from "../grpc-target.ts";
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
