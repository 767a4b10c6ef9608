import type { VagrantResourceDetail } from "@tapedeck/proto/tapedeck/v1/event";
import type { FrameOutcome, InventoryRules, Judgement, Sighting, Times } from "../../inventory/inventory-rules.ts";
import type { AcceptedResource } from "./describe-resources.ts";
import type { ReplacedTargets } from "./replaced-targets.ts";
import { addedFact, type Circumstances, changedFact, removedFact } from "./resource-facts.ts";
import { decodeResource, messageTypeOf, type ResourceKind } from "./resource-kinds.ts";

/** The id of the command job that runs on a project (by its resource_id) now. */
export type RunningCommand = (project: string) => string | undefined;

/** How the resources of one kind are judged: one answer is proof of what is new, changed or gone. */
export class ResourceRules implements InventoryRules<AcceptedResource> {
  readonly entryType: string;
  readonly isConclusive = true;
  readonly #kind: ResourceKind;
  readonly #runningCommand: RunningCommand;
  readonly #replaced: ReplacedTargets;

  constructor(kind: ResourceKind, runningCommand: RunningCommand, replaced: ReplacedTargets) {
    this.entryType = messageTypeOf(kind);
    this.#kind = kind;
    this.#runningCommand = runningCommand;
    this.#replaced = replaced;
  }

  adopt(sighting: Sighting): AcceptedResource {
    decodeResource(this.#kind, sighting.id, sighting.bytes);
    return accepted(sighting);
  }

  judge(before: AcceptedResource | undefined, sighting: Sighting): Judgement<AcceptedResource> {
    const { id, bytes, redacted, at, after } = sighting;
    const now = decodeResource(this.#kind, id, bytes);
    const around = this.#circumstances(now.detail, after);
    const fact =
      before === undefined
        ? addedFact(now, this.#replaced.takeBy(now.detail), around)
        : changedFact(decodeResource(this.#kind, id, before.bytes), now, around);
    const original = { type: this.entryType, bytes, redacted };
    const outcomes: FrameOutcome[] = fact ? [{ what: "frame", original, facts: [fact], observedAt: at }] : [];
    return { memory: accepted(sighting), outcomes };
  }

  /** The list lacks the resource, so it is gone. */
  removed(id: string, { bytes }: AcceptedResource, { at, after }: Times): FrameOutcome {
    const resource = decodeResource(this.#kind, id, bytes);
    this.#replaced.removed(resource.detail);
    const fact = removedFact(resource, this.#circumstances(resource.detail, after));
    return { what: "frame", facts: [fact], observedAt: at };
  }

  isHeld(): boolean {
    return false;
  }

  isPresent(): boolean {
    return true;
  }

  #circumstances({ id, parent_id }: VagrantResourceDetail, after: Times["after"]): Circumstances {
    if (this.#kind === "target") return { after, job: this.#runningCommand(parent_id) };
    return { after, job: this.#kind === "project" ? this.#runningCommand(id) : undefined };
  }
}

/** A copy, which does not keep the whole answer alive. */
function accepted({ bytes, redacted }: Sighting): AcceptedResource {
  return { bytes: Uint8Array.from(bytes), redacted };
}
