import { kindNoun, kinds } from "../events/kinds.ts";
import { withoutCovered } from "../log/subject-match.ts";
import { workspaceFilter } from "../log/subjects.ts";
import { asciiName } from "../source.ts";
import type { Filter } from "./filter.ts";
import { kindMatches } from "./filter.ts";

/** JetStream takes many filter subjects, but each costs a comparison per message; past this, wider ones are used. */
const maxSubjects = 64;

/**
 * Subjects that together cover every event of the workspace that can match the filter (and more: `matches`
 * decides). Shape: tapedeck.v2.<workspace>.<developer>.<project>.<upstream>.<channel>.<noun>.
 */
export function toSubjects(filter: Filter, workspace: string): readonly string[] {
  const nouns = filter.kinds === undefined ? ["*"] : nounsOf(filter.kinds);
  const upstreams = [...new Set(filter.upstreams ?? ["*"])];
  const developers = [...new Set(filter.developers?.map(asciiName) ?? ["*"])];
  const projects = [...new Set(filter.projects?.map(asciiName) ?? ["*"])];
  const sources = [...new Set(filter.sources?.map(fromSource) ?? [])];

  const places = () =>
    sources.length > 0
      ? sources
      : developers.flatMap((developer) => projects.flatMap((p) => upstreams.map((u) => `${developer}.${p}.${u}`)));
  // Counted before they are made: a hundred values in each field would be millions.
  const count = sources.length || developers.length * projects.length * upstreams.length;
  const candidates = [
    { count: count * nouns.length, make: () => places().flatMap((place) => nouns.map((noun) => `${place}.*.${noun}`)) },
    { count, make: () => places().map((place) => `${place}.*.*`) },
    { count: nouns.length, make: () => nouns.map((noun) => `*.*.*.*.${noun}`) },
  ];
  const narrowest = candidates.find((candidate) => candidate.count <= maxSubjects);
  if (narrowest === undefined) return [workspaceFilter(workspace)];
  return withoutCovered(narrowest.make().map((subject) => `tapedeck.v2.${asciiName(workspace)}.${subject}`));
}

function nounsOf(patterns: readonly string[]): string[] {
  const matching = kinds.filter((kind) => patterns.some((pattern) => kindMatches(pattern, kind)));
  const all = new Set(kinds.map(kindNoun));
  const chosen = new Set(matching.map(kindNoun));
  return chosen.size === all.size ? ["*"] : [...chosen];
}

function fromSource(source: string): string {
  const parts = asciiName(source).split("/");
  const [developer = "*", project = "*", upstream = "*"] = parts.length === 4 ? parts.slice(1) : parts;
  return `${developer}.${project}.${upstream}`;
}
