import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { type Observation, Resources } from "@tapedeck/proto/tapedeck/v1/observation";
import { Basis, Box, Operation_PhysicalState, Project, Runner, Target } from "@tapedeck/proto/vagrant/vagrant";
import { msOfTimestamp, timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { type ObservationOutcome, outcomesOf, type WatcherOptions } from "../../inventory/observing.ts";
import { type ComparedOutcome, compared } from "../../inventory/testing/outcome-fields.ts";
import type { ResourceKind } from "../resources/resource-kinds.ts";
import { ResourcesWatcher } from "../resources/resources-watcher.ts";

// Resources and observations of them for tests, and the fields of a watcher's facts that tests compare.

/** Its id, and its message encoded. */
export type Entry = readonly [id: string, bytes: Uint8Array];
/** "same" as in the last observation; `missing`: runners that were asked for in vain. */
export type ListedResources = Partial<Record<ResourceKind, readonly Entry[] | "same">> & {
  readonly missing?: readonly string[];
};

type State = Exclude<keyof typeof Operation_PhysicalState, "UNRECOGNIZED">;
type TargetFields = {
  readonly state?: State;
  readonly name?: string;
  readonly uuid?: string;
  readonly project?: { readonly resource_id: string; readonly name?: string };
  readonly parent?: { readonly resource_id: string } | undefined;
  readonly record?: { readonly type_url: string; readonly value: Buffer };
  readonly metadata?: { readonly metadata: Record<string, string> };
};

/** A target as a server answers it: as its own parent. */
export function target(id: string, observation: TargetFields = {}): Entry {
  const { name = id, state = "CREATED", parent = { resource_id: id }, project, ...more } = observation;
  const message = Target.fromPartial({
    resource_id: id,
    name,
    provider: "virtualbox",
    state: Operation_PhysicalState[state],
    ...more,
    ...("parent" in observation && observation.parent === undefined ? {} : { parent }),
    project: { name: "shop", path: "/home/dev/shop", ...(project ?? { resource_id: "p1" }) },
  });
  return [id, Target.encode(message).finish()];
}

export function project(id: string, more: Partial<Project> = {}): Entry {
  const message = Project.fromPartial({
    resource_id: id,
    name: "shop",
    path: "/home/dev/shop",
    basis: { resource_id: "b1", name: "default" },
    ...more,
  });
  return [id, Project.encode(message).finish()];
}

export function basis(id: string, more: Partial<Basis> = {}): Entry {
  const message = Basis.fromPartial({ resource_id: id, name: "default", path: "/home/dev/.vagrant.d", ...more });
  return [id, Basis.encode(message).finish()];
}

export function box(id: string, more: Partial<Box> = {}): Entry {
  const message = Box.fromPartial({
    resource_id: id,
    name: "hashicorp/bionic64",
    version: "1.0.282",
    provider: "virtualbox",
    directory: "/boxes/bionic64",
    metadata: { provider: "virtualbox" },
    last_update: { seconds: 0n, nanos: 0 },
    ...more,
  });
  return [id, Box.encode(message).finish()];
}

export function runner(id: string, more: Partial<Runner> = {}): Entry {
  return [id, Runner.encode(Runner.fromPartial({ id, by_id_only: true, ...more })).finish()];
}

export type ResourcePlay = {
  readonly watcher: ResourcesWatcher;
  /** Everything that was seen, in order. */
  readonly record: ObservationOutcome[];
  readonly observation: (at: number, observed: ListedResources) => readonly ComparedOutcome[];
  readonly failed: (at: number, message: string, code?: number) => readonly ComparedOutcome[];
};

export type PlayOptions = {
  readonly describeAfter?: number;
  readonly runningCommand?: (project: string) => string | undefined;
  readonly mask?: WatcherOptions["mask"];
  readonly frameBytes?: number;
};

/** Plays observations (at ms since 1970) to a watcher; each call gives the outcomes, as tests compare them. */
export function playResources({
  describeAfter = 1_000,
  runningCommand = () => undefined,
  mask = (_, bytes) => ({ bytes, redacted: 0 }),
  frameBytes,
}: PlayOptions = {}): ResourcePlay {
  const options = { mask, settings: {}, ...(frameBytes !== undefined && { frameBytes }) };
  const watcher = new ResourcesWatcher(options, runningCommand, { describeAfter });
  const record: ObservationOutcome[] = [];
  const observation = (at: number, seen: Observation["result"]) => {
    const news = outcomesOf(watcher.observe("resources", { result: seen }, timestampOfMs(at)));
    record.push(...news);
    return comparedResources(news);
  };
  return {
    watcher,
    record,
    observation: (at, observed) => observation(at, { $case: "resources", value: lookAt(observed) }),
    failed: (at, message, code = 4) => observation(at, { $case: "failed", value: { code, message } }),
  };
}

export const everyKind: Readonly<Record<ResourceKind, readonly Entry[]>> = {
  target: [],
  project: [],
  basis: [],
  box: [],
  runner: [],
};

function lookAt({ missing = [], ...observed }: ListedResources): Resources {
  return Resources.fromPartial({
    kinds: Object.entries(observed).map(([kind, entries]) => ({
      ...(entries === "same"
        ? { kind, same: true }
        : { kind, entries: entries.map(([id, bytes]) => ({ id, bytes: Buffer.from(bytes) })) }),
      ...(kind === "runner" && { missing: [...missing] }),
    })),
  });
}

/** The outcomes as tests compare them: of a fact's detail, the fields that changed. */
export function comparedResources(outcomes: readonly ObservationOutcome[]): readonly ComparedOutcome[] {
  return compared(outcomes, ({ detail }) => {
    const changed = detail?.$case === "thing" ? detail.value.changed : [];
    return changed.length > 0 ? { changed } : {};
  });
}

/** The frames of a record. */
export function framesOf(record: readonly ObservationOutcome[]): Extract<ObservationOutcome, { what: "frame" }>[] {
  return record.flatMap((seen) => (seen.what === "frame" ? [seen] : []));
}

/** The details of facts about resources, without what is empty. */
export function detailsOf(record: readonly ObservationOutcome[]): object[] {
  return framesOf(record).flatMap(({ facts: [{ detail }] }) => (detail?.$case === "thing" ? [said(detail.value)] : []));
}

function said(message: object): object {
  const isSaid = ([name, value]: [string, unknown]) =>
    name !== "_unknownFields" && value !== "" && value !== false && !(Array.isArray(value) && value.length === 0);
  return Object.fromEntries(Object.entries(message).filter(isSaid));
}

/** Between which moments (ms) each fact happened. */
export function intervalsOf(
  record: readonly ObservationOutcome[],
): (readonly [after: number | undefined, until: number])[] {
  return framesOf(record).map(({ facts: [{ notBefore }], observedAt }) => [
    notBefore && msOfTimestamp(notBefore),
    msOfTimestamp(observedAt),
  ]);
}

/** All events that the log would give back. */
export function eventsOf(record: readonly ObservationOutcome[]): Event[] {
  return framesOf(record).map(({ facts: [fact], original, observedAt }, index) =>
    Event.decode(
      Event.encode(
        Event.fromPartial({
          channel: "resources",
          ordinal: BigInt(index + 1),
          kind: fact.kind,
          subject: fact.subject ?? "",
          observed_at: observedAt,
          redacted: original?.redacted ?? 0,
          ...(fact.notBefore && { not_before: fact.notBefore }),
          ...(original && { original: { type: original.type, bytes: Buffer.from(original.bytes) } }),
          ...(fact.detail && { detail: fact.detail }),
        }),
      ).finish(),
    ),
  );
}

/** What a recorder reads back: the last description, and what came after it. */
export function readBack(record: readonly ObservationOutcome[]): readonly Event[] {
  const events = eventsOf(record);
  const isBeginning = ({ kind, detail }: Event) =>
    kind === "inventory.described" && detail?.$case === "host" && detail.value.part === 0;
  return events.slice(events.findLastIndex(isBeginning));
}
