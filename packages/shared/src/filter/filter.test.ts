import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { kinds } from "../events/kinds.ts";
import { eventSubject } from "../log/subjects.ts";
import { parseSourceName } from "../source.ts";
import { matches, parseFilter } from "./filter.ts";
import { toSubjects } from "./subjects.ts";

const developers = ["alice", "bob", "chris"];
const projects = ["shop", "blog"];

const anyEvent = fc
  .record({
    developer: fc.constantFrom(...developers),
    project: fc.constantFrom(...projects),
    kind: fc.constantFrom(...kinds),
    channel: fc.constantFrom("v1", "v2", "tapedeck"),
    outcome: fc.constantFrom(0 as const, 1 as const, 2 as const),
    subject: fc.constantFrom("web", "api", ""),
  })
  .map(({ developer, project, ...rest }) =>
    Event.fromPartial({ ...rest, source: `acme/${developer}/${project}/skaffold` }),
  );

const some = (values: readonly string[]) =>
  fc.option(fc.uniqueArray(fc.constantFrom(...values), { minLength: 1 }), { nil: undefined });

const anyFilter = fc.record({
  developers: some(developers),
  projects: some(projects),
  upstreams: some(["skaffold"]),
  sources: some(["alice/shop", "bob/blog/skaffold", "acme/chris/shop/skaffold"]),
  kinds: some(["build.*", "*.failed", "deploy.failed", "*", "log.written"]),
  subjects: some(["web", "api"]),
  outcomes: some(["succeeded", "failed"]),
});

describe("a filter", () => {
  it("asks the log for subjects that cover every event it matches", () => {
    fc.assert(
      fc.property(anyFilter, anyEvent, (input, event) => {
        const filter = parseFilter(input);
        const source = parseSourceName(event.source);
        if (source === undefined || !matches(filter, event)) return;
        const subject = eventSubject(source, event.channel, event.kind).split(".");
        const covered = toSubjects(filter, "acme").some((pattern) =>
          pattern.split(".").every((token, at) => token === ">" || token === "*" || token === subject[at]),
        );
        expect(covered).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  it("never asks for another workspace", () => {
    const filter = parseFilter({ sources: ["other/alice/shop/skaffold"], kinds: ["build.*"] });
    expect(toSubjects(filter, "acme").every((subject) => subject.startsWith("tapedeck.v1.acme."))).toBe(true);
  });

  it("makes subjects of the log's shape, whatever people type", () => {
    const anything = fc.array(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 3 });
    const input = fc.record({ developers: anything, projects: anything, upstreams: anything }, { requiredKeys: [] });
    fc.assert(
      fc.property(input, (fields) => {
        for (const subject of toSubjects(parseFilter(fields), "acme")) {
          expect(subject).toMatch(/^tapedeck\.v1\.acme(\.([a-z0-9_-]+|\*)){5}$/);
        }
      }),
    );
  });

  it("widens when there are too many subjects", () => {
    const many = parseFilter({ developers: Array.from({ length: 90 }, (_, n) => `dev${n}`), kinds: ["build.*"] });
    expect(toSubjects(many, "acme")).toEqual(["tapedeck.v1.acme.*.*.*.*.build"]);
  });

  it.each([
    [{ colours: ["red"] }, "filter.colours"],
    [{ kinds: "build.*" }, "filter.kinds"],
    [{ kinds: ["Build"] }, "filter.kinds"],
    [{ kinds: ["nothing.happened"] }, "filter.kinds"],
    [{ outcomes: ["good"] }, "filter.outcomes"],
    [{ sources: ["alice"] }, "filter.sources"],
    [[], "filter"],
  ])("%j is refused, naming %s", (input, field) => {
    expect(() => parseFilter(input)).toThrow(expect.objectContaining({ code: "invalid_argument", details: { field } }));
  });
});
