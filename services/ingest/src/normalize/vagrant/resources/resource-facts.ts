import { VagrantResourceDetail } from "@tapedeck/proto/tapedeck/v1/event";
import { ownValue } from "@tapedeck/shared/own-value";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import type { Fact } from "../../fact.ts";
import { firstLine, name, summary } from "../../facts.ts";
import { changedFields } from "./canonical.ts";
import { isResourceKind, type ResourceEntry } from "./resource-kinds.ts";

export type Circumstances = {
  /** The last observation of this kind before the one that shows it. */
  readonly after: Timestamp | undefined;
  /** The command job that runs on its project. */
  readonly job: string | undefined;
};

/** The most field names of one event. Real messages have about ten. */
const maxFields = 50;

/** `replaces`: the resource_id that the target of this project and name had before. */
export function addedFact({ detail }: ResourceEntry, replaces: string | undefined, circumstances: Circumstances): Fact {
  return resourceFact("added", "was added", { ...detail, replaces: replaces ?? "" }, circumstances);
}

/** Undefined if nothing relevant changed. */
export function changedFact(before: ResourceEntry, now: ResourceEntry, circumstances: Circumstances): Fact | undefined {
  const changed = changedFields(before.fields, now.fields).slice(0, maxFields).map(name);
  if (changed.length === 0) return undefined;
  const { state } = now.detail;
  const last_state = before.detail.state === state ? "" : before.detail.state;
  const what =
    last_state === "" ? `changed: ${changed.join(", ")}` : (ownValue(inWords, state) ?? `is in state ${state}`);
  return resourceFact("changed", what, { ...now.detail, changed, last_state }, circumstances);
}

export function removedFact({ detail }: ResourceEntry, circumstances: Circumstances): Fact {
  // The end of a command deletes targets that are in one of these.
  const scrubbed = detail.state === "NOT_CREATED" || detail.state === "DESTROYED";
  return resourceFact("removed", "was removed", { ...detail, scrubbed }, circumstances);
}

/** Vagrant answers CREATED for a machine that runs, and DESTROYED for one that is powered off. */
const inWords: Readonly<Record<string, string>> = {
  UNKNOWN: "is in an unknown state",
  PENDING: "is pending",
  CREATED: "is running",
  DESTROYED: "is destroyed or powered off",
  HALTED: "is halted",
  NOT_CREATED: "is not created",
};

function resourceFact(
  verb: "added" | "changed" | "removed",
  what: string,
  detail: VagrantResourceDetail,
  { after, job }: Circumstances,
): Fact {
  const { kind, id } = detail;
  if (!isResourceKind(kind)) throw new Error(`no kind ${kind}`);
  return {
    kind: `${kind}.${verb}`,
    subject: id,
    summary: summary(firstLine(`${displayName(detail)} ${what}`)),
    ...(after && { notBefore: after }),
    detail: { $case: "thing", value: VagrantResourceDetail.create({ ...detail, job: job ?? "" }) },
  };
}

/** "web1", "box hashicorp/bionic64 1.0.282 (virtualbox)", "runner 01M7WSXQZS1K6ZCYSAATXY98MQ". */
function displayName({ kind, id, name, version, provider }: VagrantResourceDetail): string {
  if (kind === "target") return name || `target ${id}`;
  const words = [kind, name || id, version, provider && `(${provider})`];
  return words.filter(Boolean).join(" ");
}
