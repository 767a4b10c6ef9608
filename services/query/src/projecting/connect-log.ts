import { type Log, openLog } from "@tapedeck/shared/log/jetstream";
import type { Logger } from "@tapedeck/shared/service/logger";
import { connectNats, type NatsSettings } from "@tapedeck/shared/service/nats";
import type { NatsConnection } from "nats";

export type ConnectedLog = Log & { readonly nats: NatsConnection };

/**
 * Opens the log on a connection of its own. Throws when the server is away: the caller retries. `warned` holds the
 * warnings of earlier calls, so that each is logged once however often the log is opened.
 */
export async function connectLog(settings: NatsSettings, log: Logger, warned: Set<string>): Promise<ConnectedLog> {
  const nats = await connectNats("query", settings, log);
  try {
    let isOpen = false;
    const opened = await openLog(nats, {
      syncKnown: settings.syncAlways ?? false,
      warn(message, fields) {
        if (isOpen || !warned.has(message)) log.warn({ ...fields }, message);
        warned.add(message);
      },
    });
    isOpen = true;
    return {
      ...opened,
      nats,
      [Symbol.asyncDispose]: async () => {
        await opened[Symbol.asyncDispose]();
        await nats.close();
      },
    };
  } catch (error) {
    await nats.close();
    throw error;
  }
}
