import { type Kind, kindNoun, kinds } from "../events/kinds.ts";
import type { Filter } from "./filter.ts";
import { kindMatches } from "./filter.ts";

/** JetStream takes many filter subjects, but each costs a comparison per message; past this, wider ones are used. */
const mostSubjects = 64;

/**
 * NATS subjects that together cover every event of the workspace that can match the filter (and more: `matches`
 * decides). Shape: tapedeck.v1.<workspace>.<developer>.<project>.<upstream>.<channel>.<noun>.
 */
export function toSubjects(filter: Filter, workspace: string): string[] {
  const nouns = filter.kinds === undefined ? ["*"] : nounsOf(filter.kinds);
  const upstreams = filter.upstreams ?? ["*"];
  const developers = filter.developers ?? ["*"];
  const projects = filter.projects ?? ["*"];
  const sources = filter.sources?.map(fromSource) ?? [];

  const places =
    sources.length > 0
      ? sources
      : developers.flatMap((developer) => projects.flatMap((p) => upstreams.map((u) => `${developer}.${p}.${u}`)));
  const candidates = [
    () => places.flatMap((place) => nouns.map((noun) => `${place}.*.${noun}`)),
    () => places.map((place) => `${place}.*.*`),
    () => nouns.map((noun) => `*.*.*.*.${noun}`),
  ];
  for (const make of candidates) {
    const subjects = [...new Set(make())];
    if (subjects.length <= mostSubjects) return withoutOverlap(subjects.map((s) => `tapedeck.v1.${workspace}.${s}`));
  }
  return [`tapedeck.v1.${workspace}.>`];
}

function nounsOf(patterns: readonly string[]): string[] {
  const nouns = kinds.filter((kind: Kind) => patterns.some((pattern) => kindMatches(pattern, kind))).map(kindNoun);
  const all = new Set(kinds.map(kindNoun));
  const wanted = new Set(nouns);
  return wanted.size === all.size ? ["*"] : [...wanted];
}

function fromSource(source: string): string {
  const parts = source.split("/");
  const [developer = "*", project = "*", upstream = "*"] = parts.length === 4 ? parts.slice(1) : parts;
  return `${developer}.${project}.${upstream}`;
}

/** JetStream refuses filter subjects that overlap; `matches` makes the wider one enough. */
function withoutOverlap(subjects: string[]): string[] {
  return subjects.filter((subject, index) => !subjects.some((other, at) => at !== index && covers(other, subject)));
}

function covers(wider: string, subject: string): boolean {
  const tokens = subject.split(".");
  return wider.split(".").every((token, index) => token === "*" || token === tokens[index]);
}
