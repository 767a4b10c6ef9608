import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { connectNats } from "@tapedeck/shared/service/nats";
import type { NatsConnection } from "nats";
import { type ConfiguredNats, startConfiguredNats } from "./configured-nats.ts";

export const natsUsers = ["ingest", "query", "gateway", "cli"] as const;
export type NatsUser = (typeof natsUsers)[number];

export const usersFile = "tapedeck-users.conf";

const passwordOf = (user: NatsUser) => `${user}-password`;

/** The users that Tapedeck ships, in the syntax of nats-server's configuration. */
export function readUsers(): Promise<string> {
  return readFile(join(import.meta.dirname, "../../infra/nats", usersFile), "utf8");
}

/** The environment from which the server reads their passwords. */
export const passwordsEnv: Readonly<Record<string, string>> = Object.fromEntries(
  natsUsers.map((user) => [`TAPEDECK_NATS_${user.toUpperCase()}_PASSWORD`, passwordOf(user)]),
);

/** Starts a nats-server with the users that Tapedeck ships. */
export async function startNatsWithUsers(more = ""): Promise<ConfiguredNats> {
  return startConfiguredNats({
    configuration: `include ${usersFile}\n${more}`,
    env: passwordsEnv,
    files: { [usersFile]: await readUsers() },
  });
}

/** Returns the login settings of a service, or of the command line. */
export function loginOf(user: NatsUser): Readonly<Record<string, string>> {
  return { TAPEDECK_NATS_USER: user, TAPEDECK_NATS_PASSWORD: passwordOf(user) };
}

/** Connects as that service, or the command line, does. */
export function connectAs(user: NatsUser, { url }: Pick<ConfiguredNats, "url">): Promise<NatsConnection> {
  return connectNats(user, { url, user, password: passwordOf(user) }, silentLogger);
}

/** The operations that the server has refused so far, such as `publish "tapedeck.v2.x" of ingest`. */
export async function violations({ logged }: Pick<ConfiguredNats, "logged">): Promise<readonly string[]> {
  const found = (await logged()).matchAll(/user:(\w+)" - (\w+) Violation - Subject "([^"]+)"/g);
  return [...found].map(([, user, what = "", subject]) => `${what.toLowerCase()} "${subject}" of ${user}`);
}
