import { type ClientReadableStream, type requestCallback, type ServiceError, status } from "@grpc/grpc-js";
import type { ListSessionsResponse, ListSourcesResponse, Session } from "@tapedeck/proto/tapedeck/v1/lists";
import {
  type DeepPartial,
  EventsRequest,
  type EventsResponse,
  ListSessionsRequest,
  ListSourcesRequest,
  TapedeckClient,
} from "@tapedeck/proto/tapedeck/v1/tapedeck";
import { fromServiceError } from "@tapedeck/shared/errors/grpc";
import { commandToStart } from "@tapedeck/shared/installation";
import { largestPage } from "@tapedeck/shared/largest-page";
import { positionBefore } from "@tapedeck/shared/log/position";
import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { CommandError } from "../command-error.ts";
import { gatewayUrlText } from "../gateway-url.ts";
import { grpcEndpoint } from "../grpc-endpoint.ts";
import type { GrpcTarget } from "../grpc-target.ts";
import type { ExportedEvent } from "../session-file/session-file-format.ts";
import { severalSources } from "./api.ts";

/** Sessions of one source, the oldest first, as they were at a position. */
export type ToExport = {
  readonly source: string;
  readonly sessions: readonly Session[];
  /** Up to and including it. */
  readonly position: string;
};

/** When sessions began, RFC 3339. With either bound, all sessions that began in that period are meant. */
export type Began = { readonly since?: string; readonly until?: string };

/** An event has its frame, of 7 MiB at most, and may repeat the frame's text. */
const maxMessageBytes = 16 * 1024 * 1024;

export type ExportFrom = Disposable & {
  /**
   * The sessions that are named, or the newest one of a source (where none is named, of the only source there is).
   * @throws CommandError when there are no such sessions, or they are of several sources
   */
  find(sessions: readonly string[], source: string | undefined, began?: Began): Promise<ToExport>;
  /** All of a session's events up to a position. Ends there; throws a CommandError when it could not come so far. */
  events(session: Session, until: string): AsyncGenerator<ExportedEvent, void>;
};

/** Reads sessions from any Tapedeck server through its public API. */
export function exportFrom(target: GrpcTarget): ExportFrom {
  const { name } = target;
  const { address, credentials, metadata } = grpcEndpoint(target);
  const client = new TapedeckClient(address, credentials, { "grpc.max_receive_message_length": maxMessageBytes });

  function answer<Response>(ask: (take: requestCallback<Response>) => unknown): Promise<Response> {
    return new Promise((resolve, reject) => {
      ask((error, response) => {
        if (error !== null) reject(worded(error, target));
        else if (response !== undefined) resolve(response);
      });
    });
  }

  /** The only one there is, or that fits. */
  async function onlySource(source: string | undefined): Promise<string> {
    const filter = { sources: source === undefined ? [] : [source] };
    const request = ListSourcesRequest.fromPartial({ filter });
    const { items } = await answer<ListSourcesResponse>((take) => client.listSources(request, metadata, take));
    const [only, ...others] = items.map((item) => item.source);
    if (only === undefined) throw new CommandError(`there are no recordings${of(source)}: see \`tapedeck status\`.`);
    if (others.length > 0) throw severalSources([only, ...others]);
    return only;
  }

  /** The first page, or all of them as they were when the first one was answered. */
  async function listedSessions(all: boolean, query: DeepPartial<ListSessionsRequest>) {
    const items: Session[] = [];
    for (let page = "", at = ""; ; ) {
      const request = ListSessionsRequest.fromPartial({ ...query, page, at });
      const list = await answer<ListSessionsResponse>((take) => client.listSessions(request, metadata, take));
      items.push(...list.items);
      if (!all || list.next_page === "") return { items, position: list.position };
      page = list.next_page;
      at = list.position;
    }
  }

  return {
    async find(requested, source, { since, until } = {}) {
      const sessions = [...new Set(requested)];
      const only = sessions.length === 0 ? await onlySource(source) : source;
      const filter = { sessions, sources: only === undefined ? [] : [only] };
      const isPeriod = since !== undefined || until !== undefined;
      const limit = isPeriod ? largestPage : Math.max(1, sessions.length);
      const { items, position } = await listedSessions(isPeriod, {
        filter,
        limit,
        ...(since !== undefined && { from: timestampOfMs(Date.parse(since)) }),
        ...(until !== undefined && { to: timestampOfMs(Date.parse(until)) }),
      });
      return { ...chosenOf(items, requested, source), position };
    },
    async *events({ session, source, start_position }, until) {
      const filter = { sources: [source], sessions: [session] };
      for (let after = positionBefore(start_position) ?? "start"; ; ) {
        const request = EventsRequest.fromPartial({
          after,
          until,
          filter,
          original: true,
          max_message_bytes: maxMessageBytes,
        });
        const call = client.events(request, metadata);
        try {
          if (yield* eventsUntilEnd(call)) return;
          throw new CommandError(`${name} closed the connection: try again.`);
        } catch (error) {
          if (error instanceof CommandError) throw error;
          const { earliest, loss } = fromServiceError(error).details;
          // Events that the log has lost are missing in the session; its reader counts them.
          if (loss !== "lost" || earliest === undefined) throw worded(error as ServiceError, target);
          after = earliest;
        } finally {
          call.on("error", () => {});
          call.cancel();
        }
      }
    },
    [Symbol.dispose]: () => client.close(),
  };
}

/** True when it came to its end. */
async function* eventsUntilEnd(call: ClientReadableStream<EventsResponse>): AsyncGenerator<ExportedEvent, boolean> {
  for await (const { position, body } of call as AsyncIterable<EventsResponse>) {
    if (body?.$case === "complete") return true;
    if (body?.$case !== "event") continue;
    const { event, recorded_at: { seconds, nanos } = { seconds: 0n, nanos: 0 } } = body.value;
    if (event === undefined) continue;
    yield { position, recordedAt: new Date(Number(seconds) * 1_000 + nanos / 1e6), event };
  }
  return false;
}

function chosenOf(items: readonly Session[], requested: readonly string[], source: string | undefined) {
  const absent = requested.find((one) => !items.some(({ session }) => session === one));
  if (absent !== undefined)
    throw new CommandError(`there is no session ${absent}${of(source)}: see \`tapedeck sessions\`.`);
  const [first] = items;
  if (first === undefined) throw new CommandError(`there are no sessions${of(source)}: see \`tapedeck sessions\`.`);
  const other = items.find((item) => item.source !== first.source);
  if (other !== undefined) {
    throw new CommandError(
      `a file holds sessions of one source, and these belong to ${first.source} and ${other.source}.`,
    );
  }
  const sessions = items.toSorted((one, next) => (one.session < next.session ? -1 : 1));
  return { source: first.source, sessions };
}

function of(source: string | undefined): string {
  return source === undefined ? "" : ` of ${source}`;
}

/** `name`: that of the server. */
export function worded({ code, details, message }: ServiceError, { name, gateway }: GrpcTarget): CommandError {
  if (code === status.UNAVAILABLE && !/ready|moment/.test(details)) {
    return new CommandError(
      `no Tapedeck server answers at ${name}${gateway === undefined ? "" : `, the gRPC port of ${gatewayUrlText(gateway)}`}: start one with \`${commandToStart()}\`, or give its address with --url or \`tapedeck login\`.`,
    );
  }
  return new CommandError(details || message);
}
