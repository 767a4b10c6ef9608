import type { AuditEntry } from "@tapedeck/shared/audit/entry";
import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { issueText } from "@tapedeck/shared/errors/schema-error";
import type { LogReader } from "@tapedeck/shared/log/log";
import { messagesBetween } from "@tapedeck/shared/log/offset";
import { belongsToLog, formatPosition, parsePosition } from "@tapedeck/shared/log/position";
import type { DeveloperVisibility } from "@tapedeck/shared/service/common-settings";
import type { SinkName, SinkStore } from "@tapedeck/shared/sinks/sink-store";
import { ulid } from "ulid";
import type { z } from "zod";
import type { CallContext } from "../call-context.ts";
import { positions } from "../positions.ts";
import { onlyDeveloper } from "../privacy/own-developer.ts";
import {
  controlIn,
  cursorIn,
  definitionIn,
  maxSinks,
  type SendOutcome,
  type SentResult,
  type SinkControl,
  type SinkDefinition,
  type SinkStatus,
  sinkNamePattern,
  statusIn,
  type TestResult,
} from "./definition.ts";
import type { ListedParked } from "./delivery/parking.ts";
import { continued } from "./delivery/start-offset.ts";
import type { CauseOf } from "./format/format.ts";
import { newSigningSecret } from "./format/standard-signature.ts";
import { formatError, parkedRequest, rewindRequest, sinkRequest, targetRequest } from "./requests.ts";
import type { SinkSettings } from "./settings.ts";
import { type KnownSink, removeRest, type Sinks } from "./sinks.ts";
import { shownTarget, targetError } from "./target/target-url.ts";

/** A sink as it may be shown: without its secrets, and of its target only the origin. */
export type SinkJson = {
  readonly name: string;
  readonly origin: KnownSink["origin"];
  readonly target: string;
  readonly format: SinkDefinition["format"];
  readonly mode: SinkDefinition["mode"];
  readonly cdevents: boolean;
  readonly live: boolean;
  readonly filter: SinkDefinition["filter"];
  /** The names of its headers. */
  readonly headers: readonly string[];
  readonly signed: boolean;
  readonly state: SinkStatus["state"] | "paused";
  readonly position: string | null;
  readonly lagEvents: number;
  readonly lagSeconds: number;
  readonly parked: number;
  readonly error: string | null;
  readonly failure: "refused" | "away" | null;
  readonly failingSince: string | null;
};

export type ParkedResult = SentResult & { readonly position: string };

/** `left`: how many were not tried, because the target is away. */
export type RetriedEvents = { readonly items: readonly ParkedResult[]; readonly left: number };

/** The sinks of the caller's workspace. Everything throws TapedeckError. */
export type SinksApi = {
  list(caller: CallContext): Promise<{ readonly items: readonly SinkJson[] }>;
  /** `secret`: signs its requests; only in this answer, and only if it was made here. `position`: where it begins. */
  add(body: unknown, caller: CallContext): Promise<SinkJson & { readonly secret?: string }>;
  pause(name: string, caller: CallContext): Promise<SinkJson>;
  resume(name: string, caller: CallContext): Promise<SinkJson>;
  /** `position`: the one that was asked for, however far it has gone on since. */
  rewind(name: string, body: unknown, caller: CallContext): Promise<SinkJson>;
  /** It keeps its place. */
  setTarget(name: string, body: unknown, caller: CallContext): Promise<SinkJson>;
  remove(name: string, caller: CallContext): Promise<{ readonly name: string }>;
  test(name: string, caller: CallContext): Promise<TestResult>;
  parked(name: string, caller: CallContext): Promise<{ readonly items: readonly ListedParked[] }>;
  retryParked(name: string, body: unknown, caller: CallContext): Promise<RetriedEvents>;
  dropParked(name: string, body: unknown, caller: CallContext): Promise<{ readonly dropped: number }>;
};

type SinkLag = Pick<SinkStatus, "lagEvents" | "lagSeconds">;
type SinkAction = Extract<AuditEntry["action"], `sink.${string}`>;

export type SinksApiDeps = {
  readonly sinks: Pick<Sinks, "all" | "changed" | "store">;
  readonly logOf: (workspace: string) => Promise<LogReader>;
  readonly settings: Pick<SinkSettings, "allowed" | "page">;
  readonly causeOf: CauseOf;
  readonly developers: DeveloperVisibility;
  readonly audit: (action: SinkAction, caller: CallContext, about: AuditEntry["about"]) => void;
};

export function sinksApi(deps: SinksApiDeps): SinksApi {
  return new SinkCalls(deps);
}

class SinkCalls implements SinksApi {
  readonly #deps: SinksApiDeps;

  constructor(deps: SinksApiDeps) {
    this.#deps = deps;
  }

  async list(caller: CallContext) {
    const known = await this.#known(caller);
    const items = await Promise.all(known.map((sink) => this.#shown(sink, caller)));
    return { items: items.toSorted((a, b) => (a.name < b.name ? -1 : 1)) };
  }

  async add(body: unknown, caller: CallContext) {
    const { workspace } = caller;
    this.#assertMayChange(caller);
    const { name, secret: own, ...fields } = parsed(sinkRequest, body);
    this.#assertAllowed(fields.target);
    const mismatch = formatError({ ...fields, secret: own });
    if (mismatch !== undefined) throw invalidArgument(`${mismatch.field}: ${mismatch.error}`, mismatch.field);
    const known = await this.#known(caller);
    if (known.some(({ sink }) => sink === name)) throw nameInUse(name);
    if (known.length >= maxSinks) {
      throw new TapedeckError("limit_exceeded", `the workspace has ${maxSinks} sinks, and may not have more`);
    }
    const log = await this.#deps.logOf(workspace);
    const offset = await positions(() => log).resolveAfter(fields.start);
    const position = formatPosition({ epoch: log.epoch, offset });
    const secret = own ?? (fields.format === "webhook" ? newSigningSecret() : undefined);
    const made = { createdAt: new Date().toISOString(), epoch: log.epoch };
    const definition = { ...fields, ...(secret !== undefined && { secret }), ...made };
    const about = { sink: name, target: shownTarget(fields.target), format: fields.format };
    await this.#changing(async (store) => {
      await this.#putNew(store, { workspace, sink: name }, definition, position);
      this.#deps.audit("sink.added", caller, about);
    });
    return {
      ...(await this.#shown(await this.#find(name, caller), caller)),
      position,
      ...(own === undefined && secret !== undefined && { secret }),
    };
  }

  pause(name: string, caller: CallContext) {
    return this.#setPaused(name, true, caller);
  }

  resume(name: string, caller: CallContext) {
    return this.#setPaused(name, false, caller);
  }

  async rewind(name: string, body: unknown, caller: CallContext) {
    const { workspace, sink } = await this.#changeable(name, caller);
    const { to } = parsed(rewindRequest, body);
    const log = await this.#deps.logOf(workspace);
    const position = formatPosition({ epoch: log.epoch, offset: await positions(() => log).resolveAfter(to) });
    await this.#changing(async (store) => {
      const generation = await this.#putCursor(store, { workspace, sink }, position);
      this.#deps.audit("sink.rewound", caller, { sink, to, position });
      await this.#putControl(store, { workspace, sink }, { generation });
    });
    return { ...(await this.#shown(await this.#find(name, caller), caller)), position };
  }

  async setTarget(name: string, body: unknown, caller: CallContext) {
    const { workspace, sink, origin } = await this.#changeable(name, caller);
    const { target } = parsed(targetRequest, body);
    this.#assertAllowed(target);
    if (origin === "settings") {
      throw invalidArgument(`the sink "${name}" is one of the settings: change its target there`, "name");
    }
    const key = { workspace, sink, type: "sink" } as const;
    await this.#changing(async (store) => {
      for (;;) {
        const { value, revision } = await store.get(key);
        if (definitionIn(value) === undefined) throw unknownSink(name);
        if ((await store.put(key, { ...(value as object), target }, { revision })) !== undefined) break;
      }
      this.#deps.audit("sink.target-changed", caller, { sink, target: shownTarget(target) });
    });
    return this.#shown(await this.#find(name, caller), caller);
  }

  async remove(name: string, caller: CallContext) {
    this.#assertMayChange(caller);
    const { workspace } = caller;
    const found = (await this.#known(caller)).find(({ sink }) => sink === name);
    if (found?.origin === "settings") {
      throw invalidArgument(`the sink "${name}" is one of the settings: remove it there first`, "name");
    }
    const of = { workspace, sink: name };
    await this.#changing(async (store) => {
      const left = sinkNamePattern.test(name) ? await store.all(["cursor"], of) : [];
      if (found === undefined && left.length === 0) throw unknownSink(name);
      await store.remove({ ...of, type: "sink" });
      this.#deps.audit("sink.removed", caller, { sink: name });
      await removeRest(store, of);
    });
    return { name };
  }

  async test(name: string, caller: CallContext) {
    const found = await this.#changeable(name, caller);
    const { workspace } = caller;
    const { testSink, warningOf } = await import("./delivery/by-hand.ts");
    const result = await testSink(found, this.#deps, caller.signal);
    const { accepted, status } = result;
    this.#deps.audit("sink.tested", caller, {
      sink: name,
      accepted: String(accepted),
      ...(status !== null && { status }),
    });
    const { value } = await answered(this.#deps.sinks.store().get({ workspace, sink: found.sink, type: "cursor" }));
    const log = await this.#deps.logOf(workspace);
    const warning = await warningOf(found, { log, cursor: cursorIn(value)?.position }, caller.signal).catch(() => null);
    return { ...result, warning };
  }

  async parked(name: string, caller: CallContext) {
    const { workspace, sink } = await this.#changeable(name, caller);
    const { stillParked } = await import("./delivery/parking.ts");
    const log = await this.#deps.logOf(workspace);
    const store = this.#deps.sinks.store();
    return { items: await answered(stillParked(store, log, { workspace, sink }, caller.signal)) };
  }

  async retryParked(name: string, body: unknown, caller: CallContext) {
    const found = await this.#changeable(name, caller);
    const { workspace, sink } = found;
    const parked = await this.#chosen(name, body, caller);
    const log = await this.#deps.logOf(workspace);
    const { retryParked } = await import("./delivery/by-hand.ts");
    const items: ParkedResult[] = [];
    const left = () => parked.length - items.length;
    try {
      for (const { position } of parked) {
        const at = parsePosition(position);
        if (at === undefined || !belongsToLog(log, at) || caller.signal.aborted) continue;
        const result = await retryParked(found, { log, offset: at.offset }, this.#deps, caller.signal);
        items.push({ position, ...result });
        if (result.accepted) await this.#unpark({ workspace, sink }, position);
        // The others would wait for as long.
        if (result.outcome === "away") break;
      }
    } finally {
      const count = (outcome: SendOutcome) => items.filter((one) => one.outcome === outcome).length;
      const counts = { accepted: count("delivered"), refused: count("refused"), away: count("away") + left() };
      this.#deps.audit("sink.parked-retried", caller, { sink, ...counts });
    }
    return { items, left: left() };
  }

  async dropParked(name: string, body: unknown, caller: CallContext) {
    const { workspace, sink } = await this.#changeable(name, caller);
    const parked = await this.#chosen(name, body, caller);
    let dropped = 0;
    try {
      for (const { position } of parked) {
        await this.#unpark({ workspace, sink }, position);
        dropped++;
      }
    } finally {
      this.#deps.audit("sink.parked-dropped", caller, { sink, dropped });
    }
    return { dropped };
  }

  async #chosen(name: string, body: unknown, caller: CallContext): Promise<readonly ListedParked[]> {
    const { position } = parsed(parkedRequest, body ?? {});
    const { items } = await this.parked(name, caller);
    const chosen = position === undefined ? items : items.filter((one) => one.position === position);
    if (position !== undefined && chosen.length === 0) {
      throw new TapedeckError("not_found", `no event at ${position} is parked`, { field: "position" });
    }
    return chosen;
  }

  async #setPaused(name: string, paused: boolean, caller: CallContext): Promise<SinkJson> {
    const { workspace, sink, isPaused } = await this.#changeable(name, caller);
    if (isPaused !== paused) {
      await this.#changing(async (store) => {
        await this.#putControl(store, { workspace, sink }, { paused });
        this.#deps.audit(paused ? "sink.paused" : "sink.resumed", caller, { sink });
      });
    }
    return this.#shown(await this.#find(name, caller), caller);
  }

  /** A call that comes at the same time as another one is refused, and changes nothing of what that stores. */
  async #putNew(store: SinkStore, of: SinkName, definition: SinkDefinition, position: string): Promise<void> {
    const key = { ...of, type: "sink" } as const;
    const { value, revision } = await store.get(key);
    const own = definitionIn(value) === undefined ? await store.remove(key, { revision }) : undefined;
    if (own === undefined) throw nameInUse(of.sink);
    // What is left of an earlier one of this name counts for nothing.
    await removeRest(store, of);
    await this.#putCursor(store, of, position);
    if ((await store.put(key, definition, { revision: own })) === undefined) throw nameInUse(of.sink);
  }

  /** The gateway that delivers it is refused its next write, and reads this one. */
  async #putCursor(store: SinkStore, of: SinkName, position: string): Promise<string> {
    const generation = ulid();
    for (;;) {
      const { revision } = await store.get({ ...of, type: "cursor" });
      const cursor = { position, generation, at: new Date().toISOString() };
      if ((await store.put({ ...of, type: "cursor" }, cursor, { revision })) !== undefined) return generation;
    }
  }

  /** What else it says stays: a sink may be paused while it is rewound. */
  async #putControl(store: SinkStore, of: SinkName, change: Partial<SinkControl>): Promise<void> {
    const key = { ...of, type: "control" } as const;
    for (;;) {
      const { value, revision } = await store.get(key);
      const control: SinkControl = { paused: false, ...controlIn(value), ...change };
      if ((await store.put(key, control, { revision })) !== undefined) return;
    }
  }

  async #unpark(of: SinkName, place: string): Promise<void> {
    await answered(this.#deps.sinks.store().remove({ ...of, type: "parked", place }));
  }

  /** `change` audits what it has stored as soon as it is: what follows may fail. */
  async #changing(change: (store: SinkStore) => Promise<void>): Promise<void> {
    await answered(change(this.#deps.sinks.store()));
    await answered(this.#deps.sinks.changed());
  }

  #assertAllowed(target: string): void {
    const error = targetError(target, this.#deps.settings.allowed);
    if (error !== undefined) throw invalidArgument(`target: ${error}`, "target");
  }

  async #known({ workspace }: CallContext): Promise<readonly KnownSink[]> {
    return (await answered(this.#deps.sinks.all())).filter((one) => one.workspace === workspace);
  }

  async #find(name: string, caller: CallContext): Promise<KnownSink> {
    const found = (await this.#known(caller)).find(({ sink }) => sink === name);
    if (found === undefined) throw unknownSink(name);
    return found;
  }

  async #changeable(name: string, caller: CallContext): Promise<KnownSink> {
    this.#assertMayChange(caller);
    return this.#find(name, caller);
  }

  /** A sink sends the recordings of all developers. */
  #assertMayChange(caller: CallContext): void {
    if (onlyDeveloper(this.#deps.developers, caller) === undefined) return;
    throw new TapedeckError(
      "forbidden",
      "developers are hidden here, and a sink would show them: only the settings have sinks",
    );
  }

  async #shown(known: KnownSink, caller: CallContext): Promise<SinkJson> {
    const { workspace, sink, definition, origin, isPaused } = known;
    const store = this.#deps.sinks.store();
    const entries = await answered(store.all(["cursor", "status", "parked"], { workspace, sink }));
    const { owner } = await answered(store.owner());
    const stored = (type: string) => entries.find((entry) => entry.type === type)?.value;
    const status = statusIn(stored("status"));
    const position = cursorIn(stored("cursor"))?.position;
    // What is stored is as old as its last delivery.
    const isStale = isPaused || owner === undefined;
    const behind = isStale && position !== undefined ? await this.#behind(workspace, position) : undefined;
    const { lagEvents, lagSeconds } = behind ?? status ?? { lagEvents: 0, lagSeconds: 0 };
    const isHidden = onlyDeveloper(this.#deps.developers, caller) !== undefined;
    const { target, format, mode, cdevents = false, live = false, filter, headers, secret } = definition;
    return {
      name: sink,
      origin,
      target: shownTarget(target),
      format,
      mode,
      cdevents,
      live,
      filter: isHidden ? {} : filter,
      headers: Object.keys(headers),
      signed: secret !== undefined,
      state: isPaused ? "paused" : owner === undefined ? "waiting" : (status?.state ?? "waiting"),
      position: position ?? null,
      lagEvents,
      lagSeconds,
      parked: entries.filter(({ type }) => type === "parked").length,
      error: isHidden ? null : (status?.error ?? null),
      failure: status?.failure ?? null,
      failingSince: status?.since ?? null,
    };
  }

  /** How far a sink is behind that nobody delivers; undefined: the log can't be read now. */
  async #behind(workspace: string, cursor: string): Promise<SinkLag | undefined> {
    try {
      const log = await this.#deps.logOf(workspace);
      const { lastOffset } = await log.bounds();
      return { lagEvents: Math.max(0, messagesBetween(continued(log, cursor), lastOffset)), lagSeconds: 0 };
    } catch {
      return undefined;
    }
  }
}

async function answered<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (cause) {
    if (cause instanceof TapedeckError) throw cause;
    throw new TapedeckError(
      "not_ready",
      "the sinks can't be read or written now: try again in a moment",
      {},
      { cause },
    );
  }
}

function nameInUse(name: string): TapedeckError {
  return invalidArgument(`there is a sink "${name}" already: \`tapedeck sink target\` changes its URL`, "name");
}

function unknownSink(name: string): TapedeckError {
  return new TapedeckError("not_found", `there is no sink "${name}"`, { field: "name" });
}

function parsed<T>(schema: z.ZodType<T>, body: unknown): T {
  const result = schema.safeParse(body, { error: issueText });
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const field = issue?.path.join(".") ?? "";
  throw invalidArgument(`${field === "" ? "body" : field}: ${issue?.message}`, field);
}
