import { outcomeNames } from "@tapedeck/shared/events/names";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";
import { type SourceName, sourceParts } from "@tapedeck/shared/source";
import { type RawBuilder, sql } from "kysely";
import { key } from "../../db/text.ts";
import type { View } from "../view.ts";

/** The events of one source, kind and outcome. */
export type EventGroup = { readonly source: string; readonly kind: string; readonly outcome: string };

type Extent = EventGroup & { readonly first: Offset; readonly last: Offset };

/** The groups of events, and where in the log each begins and ends. They belong to no session, so they outlive it. */
export const eventGroups: View = {
  name: "event_groups",
  version: 1,
  sessionTables: [],
  async apply(tx, batch) {
    const extents = new Map<string, Extent>();
    for (const { event, offset } of batch) {
      const group = groupOf(event);
      const name = groupName(group);
      extents.set(name, { ...group, first: extents.get(name)?.first ?? offset, last: offset });
    }
    const groups = [...extents.values()];
    const parts = groups.map(({ source }) => sourceParts(source as SourceName));
    const texts = [
      ...[groups.map(groupName), groups.map(({ source }) => source), parts.map(({ workspace }) => workspace)],
      ...[parts.map(({ developer }) => developer), parts.map(({ project }) => project)],
      ...[parts.map(({ upstream }) => upstream), groups.map(({ kind }) => kind), groups.map(({ outcome }) => outcome)],
    ].map((values) => sql`${values}::text[]`);
    await sql`
      insert into event_groups (id, source, workspace, developer, project, upstream, kind, outcome, first_position, last_position)
      select ${groupId(sql`name`)}, source, workspace, developer, project, upstream, kind, outcome, first, last
      from unnest(${sql.join(texts)}, ${groups.map(({ first }) => first)}::bigint[], ${groups.map(({ last }) => last)}::bigint[])
        as given (name, source, workspace, developer, project, upstream, kind, outcome, first, last)
      on conflict (id) do update set last_position = excluded.last_position
    `.execute(tx);
  },
};

export function groupOf({ source, kind, outcome }: RecordedEvent["event"]): EventGroup {
  return { source, kind: key(kind), outcome: outcomeNames[outcome] ?? "" };
}

/** No part has a space in it. */
export function groupName({ source, kind, outcome }: EventGroup): string {
  return `${source} ${kind} ${outcome}`;
}

/** The id of the group with this name. */
export function groupId(name: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`hashtextextended(${name}, 0)`;
}
