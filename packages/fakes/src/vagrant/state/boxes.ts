import {
  Box,
  type DeleteBoxRequest,
  type FindBoxRequest,
  type FindBoxResponse,
  type GetBoxRequest,
  type GetBoxResponse,
  type ListBoxesResponse,
  type UpsertBoxRequest,
  type UpsertBoxResponse,
} from "@tapedeck/proto/vagrant/vagrant";
import { Panic } from "../status.ts";
import type { ServerDatabase } from "./database.ts";
import { checkPresent, checkUnique, invalid, needed, notFound, updated } from "./records.ts";
import type { Stamps } from "./stamps.ts";

/** The calls about boxes. */
export function boxCalls({ boxes }: ServerDatabase, stamps: Stamps) {
  /** Whatever is read was updated in 1970. */
  function shown(box: Box | undefined): Box {
    if (box === undefined) throw notFound("box");
    return { ...box, last_update: { seconds: 0n, nanos: 0 } };
  }

  function upsertBox({ box: given }: UpsertBoxRequest): UpsertBoxResponse {
    if (given === undefined) throw new Panic("UpsertBox without a box");
    const old = boxes.get(given.resource_id) ?? Box.fromPartial({ resource_id: given.resource_id || stamps.id() });
    const changed = updated(old, given, ["name", "provider", "version", "directory", "metadata", "metadata_url"]);
    const box = { ...changed, version: ["", "0"].includes(changed.version) ? "0.0.0" : changed.version };
    checkPresent(box, ["directory", "name", "provider"]);
    checkUnique(boxes.values(), box, { fields: ["directory"] });
    checkUnique(boxes.values(), box, { fields: ["name", "provider", "version"] });
    boxes.set(box.resource_id, box);
    return { box: { ...given, last_update: stamps.now() } };
  }

  function getBox({ box }: GetBoxRequest): GetBoxResponse {
    return { box: shown(boxes.get(needed(box, "box").resource_id)) };
  }

  function deleteBox({ box }: DeleteBoxRequest): object {
    boxes.delete(box?.resource_id ?? "");
    return {};
  }

  function listBoxes(): ListBoxesResponse {
    const refs = [...boxes.values()].map(({ resource_id, name, version, provider }) => {
      return { resource_id, name, version, provider };
    });
    return { boxes: refs };
  }

  /** If the version is a condition, the answer is the last box of the name as soon as any fits: a bug of the server. */
  function findBox(request: FindBoxRequest): FindBoxResponse {
    const { resource_id, name, version, provider } = needed(request.box, "box");
    if (resource_id !== "") return { box: shown(boxes.get(resource_id)) };
    if (name === "") throw invalid("name: cannot be blank.");
    const named = [...boxes.values()].filter((box) => box.name === name && ["", box.provider].includes(provider));
    if (provider !== "" && /^[\d.]+$/.test(version)) {
      const exact = named.find((box) => box.version === version);
      return { box: exact && shown(exact) };
    }
    const isMatched = named.some((box) => fits(box.version, version || "> 0"));
    const last = named.at(-1);
    return { box: isMatched && last !== undefined ? shown(last) : undefined };
  }

  return { upsertBox, getBox, deleteBox, listBoxes, findBox };
}

/** "1.2.0" for ">= 1, < 2". */
function fits(version: string, condition: string): boolean {
  return condition.split(",").every((part) => {
    const [, operator = "=", bound = ""] = /^\s*(>=|<=|!=|~>|>|<|=)?\s*(.*?)\s*$/.exec(part) ?? [];
    const order = compare(version, bound);
    switch (operator) {
      case ">":
        return order > 0;
      case ">=":
        return order >= 0;
      case "<":
        return order < 0;
      case "<=":
        return order <= 0;
      case "!=":
        return order !== 0;
      case "~>":
        return order >= 0 && compare(version, pessimistic(bound)) < 0;
      default:
        return order === 0;
    }
  });
}

/** The first version that "~> 1.2.3" leaves out: 1.3. */
function pessimistic(bound: string): string {
  const parts = bound.split(".").map(Number);
  const kept = parts.slice(0, Math.max(1, parts.length - 1));
  return [...kept.slice(0, -1), (kept.at(-1) ?? 0) + 1].join(".");
}

function compare(one: string, other: string): number {
  const [a, b] = [one.split(".").map(Number), other.split(".").map(Number)];
  for (let index = 0; index < Math.max(a.length, b.length); index++) {
    const difference = (a[index] ?? 0) - (b[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
