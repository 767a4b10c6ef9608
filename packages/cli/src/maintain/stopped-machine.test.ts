import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { expect, inject, it } from "vitest";
import { openStoppedMachine } from "./stopped-machine.ts";

/** What the NATS client, or a URL, makes something else of where it stands in an address. */
const passwords = ["secret:4222", "a@b", "a/b", "a#b", "a?b", "50%", "p@ss:7/w#rd"];

async function dataFolder(natsPassword: string): Promise<string> {
  const data = join(await mkdtemp(join(inject("serversFolder"), "stopped-")), "data");
  await mkdir(data);
  const secrets = { natsPassword, postgresPassword: "p", servicesKey: "k" };
  await writeFile(join(data, "secrets"), JSON.stringify(secrets));
  return data;
}

it.each(passwords)("the NATS of a data folder is opened with the password %s", async (password) => {
  await using machine = await openStoppedMachine(await dataFolder(password), {});
  await machine.nats.flush();
  expect(machine.nats.isClosed()).toBe(false);
});

it.each(passwords)("a NATS of the user's is opened with the password %s", async (password) => {
  await using nats = await startTestNats({ user: "acme", password });
  const env = {
    TAPEDECK_NATS_URL: `nats://127.0.0.1:${nats.port}`,
    TAPEDECK_NATS_USER: "acme",
    TAPEDECK_NATS_PASSWORD: password,
  };
  await using machine = await openStoppedMachine(await dataFolder("other"), env);
  await machine.nats.flush();
  expect(machine.nats.isClosed()).toBe(false);
  await expect(openStoppedMachine(await dataFolder("other"), { ...env, TAPEDECK_NATS_PASSWORD: "no" })).rejects.toThrow(
    /^NATS at 127.0.0.1:\d+ can't be reached/,
  );
});
