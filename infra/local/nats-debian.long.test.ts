import { existsSync } from "node:fs";
import { expect, it } from "vitest";
import { temporaryFolder } from "../testing/temporary-folder.ts";
import { isNewEnough, natsVersion } from "./nats-binary.ts";
import { fetchNatsFromDebian } from "./nats-debian.ts";

it.runIf(existsSync("/etc/debian_version"))("Debian's package is fetched, verified and new enough", async () => {
  const folder = await temporaryFolder();
  const version = await natsVersion(await fetchNatsFromDebian({ folder, log: () => {} }));
  expect(version).toBeDefined();
  expect(isNewEnough(version ?? "")).toBe(true);
});
