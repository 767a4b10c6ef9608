import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { kinds } from "../events/kinds.ts";
import { outcomeNames } from "../events/names.ts";
import { eventSubject } from "../log/subjects.ts";
import { parseSourceName } from "../source.ts";
import { kindMatches, matches, parseFilter } from "./filter.ts";
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
    session: fc.constantFrom("01A", "01B", ""),
    upstream: fc.constantFrom("skaffold", "rkt"),
  })
  .map(({ developer, project, upstream, ...rest }) =>
    Event.fromPartial({ ...rest, source: `acme/${developer}/${project}/${upstream}` }),
  );

/** A field that has, among others, one of the words for what an event has; where it has nothing, no field. */
const around = (own: readonly string[], others: readonly string[], max = 5) =>
  own[0] === ""
    ? fc.constant(undefined)
    : fc.option(
        fc
          .tuple(fc.array(fc.constantFrom(...others), { maxLength: max }), fc.constantFrom(...own))
          .map((values) => values.flat()),
        { nil: undefined },
      );

/** An event, and a filter that it passes, in people's words. */
const anyMatch = anyEvent.chain((event) => {
  const [workspace = "", developer = "", project = "", upstream = ""] = event.source.split("/");
  const [noun = "", verb = ""] = event.kind.split(".");
  const place = `${developer}/${project}`;
  const filter = fc.record({
    developers: around(
      [developer, developer.toUpperCase()],
      Array.from({ length: 99 }, (_, number) => `dev${number}`),
      90,
    ),
    projects: around([project, project.toUpperCase()], projects, 30),
    upstreams: around([upstream], ["bazel", "vagrant"]),
    sources: around(
      [place, place.toUpperCase(), `${place}/${upstream}`, `${workspace}/${place}/${upstream}`],
      ["alice/shop", "Bob/Blog", "bob/blog/skaffold", "acme/chris/shop/skaffold", "other/chris/shop/skaffold"],
      80,
    ),
    sessions: around([event.session], ["01C", "01D"]),
    kinds: around([event.kind, `${noun}.*`, `*.${verb}`, "*", "*.*"], kinds, 40),
    subjects: around([event.subject], ["other"]),
    outcomes: around([outcomeNames[event.outcome]], ["canceled"]),
  });
  return fc.tuple(filter, fc.constant(event));
});

describe("a filter", () => {
  it("has subjects that cover every event it matches", () => {
    fc.assert(
      fc.property(anyMatch, ([input, event]) => {
        const filter = parseFilter(input);
        const source = parseSourceName(event.source);
        expect([source, matches(filter, event)]).toEqual([event.source, true]);
        if (source === undefined) return;
        const subject = eventSubject(source, event.channel, event.kind).split(".");
        const covered = toSubjects(filter, "acme").some((pattern) =>
          pattern.split(".").every((token, at) => token === ">" || token === "*" || token === subject[at]),
        );
        expect(covered).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  it("is unchanged by a second parse", () => {
    fc.assert(
      fc.property(anyMatch, ([input]) => {
        expect(parseFilter(parseFilter(input))).toEqual(parseFilter(input));
      }),
    );
  });

  it("matches a command by its own name as well as by its job", () => {
    const operation = { kind: "command", subject: "up", runner: 0, loop: 0, instance: "J1" };
    const event = Event.fromPartial({ kind: "command.started", subject: "J1", operation });
    const about = (subject: string) => matches({ subjects: [subject] }, event);
    expect([about("J1"), about("up"), about("J2"), about("")]).toEqual([true, true, false, false]);
  });

  it("never has a subject of another workspace", () => {
    const filter = parseFilter({ sources: ["other/alice/shop/skaffold"], kinds: ["build.*"] });
    expect(toSubjects(filter, "acme").every((subject) => subject.startsWith("tapedeck.v2.acme."))).toBe(true);
  });

  it("has subjects of the log's form, for any input", () => {
    const anything = fc.array(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 3 });
    const input = fc.record({ developers: anything, projects: anything, upstreams: anything }, { requiredKeys: [] });
    fc.assert(
      fc.property(input, (fields) => {
        for (const subject of toSubjects(parseFilter(fields), "acme")) {
          expect(subject).toMatch(/^tapedeck\.v2\.acme(\.([a-z0-9_-]+|\*)){5}$/);
        }
      }),
    );
  });

  it("widens its subjects when there are too many", () => {
    const many = parseFilter({ developers: Array.from({ length: 90 }, (_, n) => `dev${n}`), kinds: ["build.*"] });
    expect(toSubjects(many, "acme")).toEqual(["tapedeck.v2.acme.*.*.*.*.build"]);
  });

  it("leaves out the kinds where places and kinds together are too many", () => {
    const places = Array.from({ length: 60 }, (_, n) => `dev${n}`);
    const many = parseFilter({ developers: places, kinds: ["build.*", "deploy.*"] });
    expect(toSubjects(many, "acme")).toEqual(places.map((developer) => `tapedeck.v2.acme.${developer}.*.*.*.*`));
  });

  it("never builds more subjects than it returns, for any number of values", () => {
    const values = (name: string) => Array.from({ length: 100 }, (_, n) => `${name}${n}`);
    const patterns = ["*.failed", "*.started", "*.changed"];
    const fields = { developers: values("d"), projects: values("p"), upstreams: values("u"), kinds: patterns };
    const ofKinds = kinds.filter((kind) => patterns.some((pattern) => kindMatches(pattern, kind)));
    const nouns = new Set(ofKinds.map((kind) => kind.split(".")[0]));
    const subjects = toSubjects(parseFilter(fields), "acme");
    expect(subjects.toSorted()).toEqual([...nouns].map((noun) => `tapedeck.v2.acme.*.*.*.*.${noun}`).sort());

    const repeated = { developers: Array(100).fill("alice"), projects: ["shop"], kinds: ["build.*"] };
    expect(toSubjects(parseFilter(repeated), "acme")).toEqual(["tapedeck.v2.acme.alice.shop.*.*.build"]);
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
