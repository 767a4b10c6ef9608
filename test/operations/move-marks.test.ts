import { MoveMarks } from "@tapedeck/ingest/record/moves/move-marks";
import { expect, it } from "vitest";
import { startConfiguredNats } from "./configured-nats.ts";
import { connectAs, passwordsEnv, readUsers, usersFile } from "./nats-users.ts";

const mayCreate = '"$JS.API.STREAM.CREATE.KV_TAPEDECK_MOVES"';
const mayRead = '"$JS.API.STREAM.MSG.GET.KV_TAPEDECK_MOVES"';
const mayPublish = '"$KV.TAPEDECK_MOVES.*", ';

it.each([
  ["written", "create the bucket", mayCreate],
  ["written", "publish", mayPublish],
  ["read back", "read", mayRead],
])("a mark can't be %s by a user that may not %s, and a move does not go on", async (what, _, permission) => {
  const users = await readUsers();
  const without = users.replace(permission, "");
  expect(without).not.toBe(users);
  const options = { configuration: `include ${usersFile}`, env: passwordsEnv, files: { [usersFile]: without } };
  await using nats = await startConfiguredNats(options);
  const nc = await connectAs("ingest", nats);
  try {
    const marks = new MoveMarks(nc);
    const setting = marks.set("acme", { state: "leaving", other: "two" }, await marks.of("acme"));
    await expect(setting).rejects.toMatchObject({
      code: "not_ready",
      message: expect.stringMatching(new RegExp(`can't be ${what}: .* infra/nats/tapedeck-users.conf`)),
    });
  } finally {
    await nc.close();
  }
});
