import type { Event, VagrantResourceDetail } from "@tapedeck/proto/tapedeck/v1/event";
import type { Observation, Observation_Failed, Resources_Kind } from "@tapedeck/proto/tapedeck/v1/observation";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { compareTimestamps } from "@tapedeck/shared/time/timestamp";
import { message } from "../../facts.ts";
import { DescriptionDue } from "../../inventory/description-due.ts";
import { Inventory } from "../../inventory/inventory.ts";
import type { FrameOutcome } from "../../inventory/inventory-rules.ts";
import type {
  ObservationOutcome,
  Observed,
  Outcomes,
  Watcher,
  WatcherOptions,
  YieldPoint,
} from "../../inventory/observing.ts";
import { recordedSha } from "../../original.ts";
import {
  type AcceptedResource,
  describedResources,
  describeResources,
  type ResourceDescription,
} from "./describe-resources.ts";
import { ReplacedTargets } from "./replaced-targets.ts";
import { messageTypeOf, pluralOf, type ResourceKind, resourceKinds } from "./resource-kinds.ts";
import { ResourceRules, type RunningCommand } from "./resource-rules.ts";

/** The known resources of one kind. */
type KindInventory = {
  readonly kind: ResourceKind;
  readonly rules: ResourceRules;
  readonly inventory: Inventory<AcceptedResource>;
  /** An observation since the connection began had all of it, so `same` is meaningful. */
  isListed: boolean;
};

/**
 * Observes the resources, on the channel "resources": recorded logs and older taps have that name. A whole list of a kind is
 * believed: a resource that it lacks is gone, and one that is new or differs is recorded.
 */
export class ResourcesWatcher implements Watcher<Observed> {
  readonly #kinds: readonly KindInventory[];
  readonly #replaced = new ReplacedTargets();
  readonly #due: DescriptionDue;

  constructor(
    { mask, frameBytes }: WatcherOptions,
    runningCommand: RunningCommand,
    { describeAfter = 1_000 }: { readonly describeAfter?: number } = {},
  ) {
    const options = { mask, ...(frameBytes !== undefined && { frameBytes }) };
    this.#due = new DescriptionDue(describeAfter);
    this.#kinds = resourceKinds.map((kind) => {
      const rules = new ResourceRules(kind, runningCommand, this.#replaced);
      return { kind, rules, inventory: new Inventory(rules, options), isListed: false };
    });
  }

  *observe(_: string, { result }: Observation, at: Timestamp): Outcomes {
    if (result?.$case === "resources") yield* this.#compare(result.value.kinds, at);
    else if (result?.$case === "failed") this.#failed(result.value);
  }

  connected(): void {
    for (const known of this.#kinds) known.isListed = false;
    outage("the server's resources were not observed", this.#kinds);
  }

  resume(event: Event): void {
    this.#due.resume(event);
    const { kind, detail, original } = event;
    const description = describedResources(event);
    if (description !== undefined) this.#resumeDescription(event, description);
    else if (detail?.$case === "thing") this.#resumeResource(event, detail.value);
    else if (kind === "upstream.unreadable" && original) {
      const known = this.#kinds.find((one) => messageTypeOf(one.kind) === original.type);
      known?.inventory.restoreUnreadable(recordedSha(original));
    }
  }

  *#compare(kinds: readonly Resources_Kind[], at: Timestamp): Outcomes {
    const answers = kinds.flatMap((answer) => {
      const known = this.#kindOf(answer.kind);
      return known && (!answer.same || known.isListed) ? [{ known, answer }] : [];
    });
    const answered = answers.map(({ known }) => known);
    yield* closeGaps(answered, at);
    const isFirst = answered.some(({ inventory }) => !inventory.isKnown);
    /** Resources that the description at the end of this observation can't name, as they could not be read. */
    const unreadables: FrameOutcome[] = [];
    for (const { known, answer } of answers) {
      const isNew = !known.inventory.isKnown;
      for (const outcome of answer.same ? [] : this.#list(known, answer, at)) {
        if (isNew && outcome.what === "frame") unreadables.push(outcome);
        else yield this.#counted(outcome);
      }
      known.inventory.times.observed(at);
    }
    if (isFirst || this.#due.isDue(at)) for (const part of this.#describe(at)) yield this.#counted(part);
    for (const outcome of unreadables) yield this.#counted(outcome);
  }

  *#list(
    known: KindInventory,
    { entries, missing }: Resources_Kind,
    at: Timestamp,
  ): Generator<FrameOutcome | YieldPoint, void> {
    const { kind, rules, inventory } = known;
    const listed = new Map(entries.map((entry) => [entry.id, entry]));
    for (const id of inventory.absentFrom(new Set(listed.keys()))) {
      const memory = inventory.memoryOf(id);
      inventory.forget(id);
      // Runners have no list: one that is not asked for any more, as no recent job names it, is forgotten.
      const isRemoved = kind !== "runner" || missing.includes(id);
      if (memory !== undefined && isRemoved) yield rules.removed(id, memory, { at, after: inventory.times.before(at) });
    }
    yield* inventory.compare([...listed.values()], at);
    known.isListed = true;
  }

  #counted<Outcome extends ObservationOutcome | YieldPoint>(outcome: Outcome): Outcome {
    if (outcome.what !== "yield") this.#due.count(outcome);
    return outcome;
  }

  #failed({ code, message: text }: Observation_Failed): void {
    const named = this.#kinds.find(({ kind }) => text.startsWith(`${kind}:`));
    const [what, why] = named ? [pluralOf(named.kind), text.slice(named.kind.length + 1).trim()] : ["resources", text];
    const reason = message(`the ${what} could not be observed: ${why || `code ${code}`}`);
    outage(reason, named ? [named] : this.#kinds);
  }

  #describe(at: Timestamp): readonly FrameOutcome[] {
    const known = this.#kinds.filter(({ inventory }) => inventory.isKnown);
    const kinds = known.map(({ kind, inventory }) => ({ kind, entries: new Map(inventory.memories) }));
    return describeResources(kinds, earliest(known.map(({ inventory }) => inventory.times.before(at))), at);
  }

  #resumeDescription(event: Event, { part, kinds }: ResourceDescription): void {
    if (part === 0) for (const { inventory } of this.#kinds) inventory.reset({ isKnown: false });
    for (const { kind, entries } of kinds) {
      const inventory = this.#kindOf(kind)?.inventory;
      if (inventory === undefined) continue;
      if (!inventory.isKnown) inventory.reset({ isKnown: true });
      for (const { id, bytes } of entries) inventory.restore(id, { bytes, redacted: 0 });
      // Some kinds may have been observed earlier than others: the description holds as of the earliest time.
      resumeTimes(inventory, event.not_before ?? event.observed_at);
    }
  }

  #resumeResource(event: Event, detail: VagrantResourceDetail): void {
    const inventory = this.#kindOf(detail.kind)?.inventory;
    // Without a description the other resources are not known: the next list is taken as it is.
    if (!inventory?.isKnown) return;
    resumeTimes(inventory, event.observed_at);
    if (event.original !== undefined) {
      inventory.restore(detail.id, { bytes: event.original.bytes, redacted: event.redacted });
      this.#replaced.takeBy(detail);
    } else {
      inventory.forget(detail.id);
      this.#replaced.removed(detail);
    }
  }

  #kindOf(name: string): KindInventory | undefined {
    return this.#kinds.find(({ kind }) => kind === name);
  }
}

function outage(reason: string, kinds: readonly KindInventory[]): void {
  for (const { inventory } of kinds) inventory.outage(reason);
}

/** One gap for all kinds that could not be observed. */
function closeGaps(kinds: readonly KindInventory[], at: Timestamp): readonly ObservationOutcome[] {
  const gaps = kinds.flatMap(({ inventory }) => inventory.closeGap(at) ?? []);
  if (gaps.length === 0) return [];
  const reason = [...new Set(gaps.map((gap) => gap.reason))].join("; ");
  return [{ what: "gap", reason, after: earliest(gaps.map(({ after }) => after)), until: at }];
}

function resumeTimes({ times }: Inventory<AcceptedResource>, at: Timestamp | undefined): void {
  if (at !== undefined) times.resume(at, false);
}

function earliest(timestamps: readonly (Timestamp | undefined)[]): Timestamp | undefined {
  return timestamps.flatMap((timestamp) => timestamp ?? []).sort(compareTimestamps)[0];
}
