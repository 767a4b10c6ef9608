import { join, resolve } from "node:path";
import { loadSecrets } from "@tapedeck/infra/local/secrets";
import { type Log, openLog } from "@tapedeck/shared/log/jetstream";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { connectNats } from "@tapedeck/shared/service/nats";
import type { NatsConnection } from "nats";
import { CommandError } from "../command-error.ts";
import { type RunningUp, runningUp } from "../up/lock.ts";
import { natsUser, ownerUrl } from "../up/own-servers.ts";
import { noServerOn } from "./here.ts";

/** The inside of the Tapedeck that `up` runs on a data folder: its log and its database. */
export type ThisMachine = AsyncDisposable & {
  readonly running: RunningUp;
  readonly nats: NatsConnection;
  readonly log: Log;
  readonly databaseUrl: string;
};

/** @throws CommandError when no Tapedeck runs there, or one with external servers */
export async function openThisMachine(data: string): Promise<ThisMachine> {
  const dataDir = resolve(data);
  const running = await runningUp(dataDir);
  if (running?.addresses.http === undefined) {
    throw noServerOn(data);
  }
  const { nats: natsAddress, postgres } = running.addresses;
  if (natsAddress === undefined || postgres === undefined) {
    throw new CommandError(
      "this Tapedeck server does not run its own NATS and Postgres: the command works only where `up` started both.",
    );
  }
  await using stack = new AsyncDisposableStack();
  const secrets = await loadSecrets(join(dataDir, "secrets"));
  const settings = { url: `nats://${natsAddress}`, user: natsUser, password: secrets.natsPassword };
  const nats = stack.adopt(await connectNats("cli", settings, silentLogger), (connection) => connection.close());
  const log = stack.use(await openLog(nats, { create: false, syncKnown: true }));
  const owned = stack.move();
  return {
    running,
    nats,
    log,
    databaseUrl: ownerUrl(postgres, secrets),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
