import { credentials } from "@grpc/grpc-js";
import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type {
  ListOperationsResponse,
  ListSessionsResponse,
  ListSourcesResponse,
} from "@tapedeck/proto/tapedeck/v1/lists";
import {
  EventsRequest,
  ListOperationsRequest,
  ListSessionsRequest,
  ListSourcesRequest,
  TapedeckClient,
} from "@tapedeck/proto/tapedeck/v1/tapedeck";
import { randomHost } from "@tapedeck/query/testing/random-host";
import { randomEvents, seeded } from "@tapedeck/query/testing/random-scenario";
import { randomServer } from "@tapedeck/query/testing/random-server";
import { rktHost, rktSession, uuid } from "@tapedeck/query/testing/rkt-scenario";
import { scenario } from "@tapedeck/query/testing/scenario";
import { ulid, vagrantSession, vagrantShop } from "@tapedeck/query/testing/vagrant-scenario";
import { kindNoun, kinds } from "@tapedeck/shared/events/kinds";
import { outcomeNames } from "@tapedeck/shared/events/names";
import { type Filter, matches, parseFilter } from "@tapedeck/shared/filter/filter";
import { sequenceOf } from "@tapedeck/shared/log/offset";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type SeededStack, startSeededStack } from "../stack/seeded-stack.ts";

// A filter means the same in a stream, in a page of history and in the lists, which Postgres answers: random filters,
// written as people write them, on randomly generated sources of every upstream.

const cleanup = new AsyncDisposableStack();
let on: SeededStack;
let client: TapedeckClient;
let seededEvents: readonly Event[];
let end: string;

function scripts(): readonly Event[][] {
  const random = seeded(7);
  const host = scenario(rktHost);
  const pods = rktSession("01R1", host);
  pods.began();
  randomHost(random, host, pods, 150);
  const server = scenario(vagrantShop);
  const jobs = vagrantSession("01V1", server);
  jobs.began();
  randomServer(random, server, jobs, { size: 200, firstJob: 1 });
  return [randomEvents(random, 700), host.events, server.events];
}

beforeAll(async () => {
  on = cleanup.use(await startSeededStack());
  client = cleanup.adopt(new TapedeckClient(on.stack.grpc, credentials.createInsecure()), (one) => one.close());
  const all = scripts();
  seededEvents = all.flat();
  for (const events of all) await on.write(events);
  await on.stack.caughtUp();
  end = on.endAt(sequenceOf((await on.log.reader.bounds()).lastOffset));
});
afterAll(() => cleanup.disposeAsync());

const answered = <Response>(ask: (done: (error: Error | null, response: Response) => void) => unknown) =>
  new Promise<Response>((resolve, reject) => {
    ask((error, response) => (error === null ? resolve(response) : reject(error)));
  });

type FilterLists = { readonly [Field in keyof Filter]?: string[] };

const lists = {
  sources: (filter: FilterLists) =>
    answered<ListSourcesResponse>((done) =>
      client.listSources(ListSourcesRequest.fromPartial({ filter, limit: 1_000 }), done),
    ),
  sessions: (filter: FilterLists) =>
    answered<ListSessionsResponse>((done) =>
      client.listSessions(ListSessionsRequest.fromPartial({ filter, limit: 1_000 }), done),
    ),
  operations: (filter: FilterLists) =>
    answered<ListOperationsResponse>((done) =>
      client.listOperations(ListOperationsRequest.fromPartial({ filter, limit: 1_000 }), done),
    ),
};

async function streamed(filter: FilterLists): Promise<string[]> {
  const request = EventsRequest.fromPartial({ after: "start", until: end, filter });
  const ids: string[] = [];
  for await (const { body } of client.events(request)) {
    if (body?.$case === "event") ids.push(body.value.event?.id ?? "");
  }
  return ids;
}

type EventsPage = { readonly items: readonly { readonly id: string }[]; readonly nextPage?: string };

async function page(filter: FilterLists, parameters: string): Promise<EventsPage> {
  const query = new URLSearchParams(parameters);
  for (const [field, values] of Object.entries(filter)) {
    for (const value of values) query.append(field.slice(0, -1), value);
  }
  const { body } = await on.stack.httpCall("GET", `/api/v1/events?until=${end}&${query}`);
  return JSON.parse(body) as EventsPage;
}

async function paged(filter: FilterLists, limit: number): Promise<string[]> {
  const ids: string[] = [];
  for (let after: string | undefined = "start"; after !== undefined; ) {
    const { items, nextPage }: EventsPage = await page(filter, `limit=${limit}&after=${after}`);
    ids.push(...items.map(({ id }) => id));
    after = nextPage;
  }
  return ids;
}

async function newest(filter: FilterLists, count: number): Promise<string[]> {
  return (await page(filter, `last=${count}`)).items.map(({ id }) => id);
}

const verbs = [...new Set(kinds.map((kind) => kind.split(".")[1] ?? ""))];
const patterns = [...kinds, ...kinds.map((kind) => `${kindNoun(kind)}.*`), ...verbs.map((verb) => `*.${verb}`), "*"];

type Words = { readonly [Field in keyof Filter]?: readonly string[] };

const ofSource: Words = {
  developers: ["alice", "Alice", "BOB", "carol", "node1", "nobody"],
  projects: ["shop", "Shop", "host", "site", "x y"],
  upstreams: ["skaffold", "Skaffold", "rkt", "vagrant", "bazel"],
  sources: [
    ...["alice/shop", "Bob/Shop", "node1/host", "carol/site", "al/shop", "alice/sho", "shop/skaffold"],
    ...["alice/shop/vagrant", "ALICE/shop/skaffold", "bob/shop/rkt", "acme/alice/shop"],
    ...["acme/bob/shop/skaffold", "Acme/Alice/Shop/Vagrant", "globex/carol/site/skaffold"],
  ],
};
const ofSession: Words = {
  ...ofSource,
  sessions: [
    ...["01R1", "01V1", "01r1", "none", "globex-carol-site-skaffold-1"],
    ...[1, 2, 3].map((number) => `acme-alice-shop-skaffold-${number}`),
  ],
};
const ofSubjects: Words = {
  ...ofSession,
  subjects: [
    ...["web", "api", "Web", "odd\0name", "n".repeat(3_000), "up", "box add", "basis-0", "deployment/web", uuid(1)],
    ...[1, 2, 3, 4].map(ulid),
  ],
  outcomes: ["succeeded", "failed", "canceled", "unknown"],
};
const ofEvents: Words = { ...ofSubjects, kinds: patterns };
const ofOperations: Words = {
  ...ofSubjects,
  kinds: ["loop", "build", "deploy", "check", "pod", "app", "job", "command"],
};

/** Filters of one or a few fields, because filters that match nothing prove little. */
function anyFilter(words: Words): fc.Arbitrary<FilterLists> {
  const fields = Object.entries(words);
  return fc
    .subarray(fields, { minLength: 1, maxLength: 3 })
    .chain((chosen) =>
      fc.record(
        Object.fromEntries(
          chosen.map(([field, values]) => [
            field,
            fc.uniqueArray(fc.constantFrom(...values), { minLength: 1, maxLength: 4 }),
          ]),
        ),
      ),
    );
}

/** Each value alone, then `more` random filters. */
function runs(words: Words, more: number): fc.Parameters<[FilterLists]> {
  const alone = Object.entries(words).flatMap(([field, values]) =>
    (field === "kinds" ? values.slice(-20) : values).map((value): [FilterLists] => [{ [field]: [value] }]),
  );
  return { examples: alone, numRuns: alone.length + more };
}

it("a filter selects exactly the matching events in a stream and in a page of history", async () => {
  let found = 0;
  await fc.assert(
    fc.asyncProperty(anyFilter(ofEvents), async (input) => {
      const filter = parseFilter(input);
      const expected = seededEvents.filter((event) => isOurs(event) && matches(filter, event)).map(({ id }) => id);
      expect(await Promise.all([streamed(input), paged(input, 1_000)])).toEqual([expected, expected]);
      expect(await newest(input, 40)).toEqual(expected.slice(-40));
      if (expected.length < 200) expect(await paged(input, 7)).toEqual(expected);
      found += expected.length;
    }),
    runs(ofEvents, 30),
  );
  expect(found).toBeGreaterThan(100);
});

it("a filter selects the sources and sessions with matching events", async () => {
  const all = { sources: (await lists.sources({})).items, sessions: (await lists.sessions({})).items };
  expect(all.sources).toHaveLength(4);
  await fc.assert(
    fc.asyncProperty(anyFilter(ofSession), async (input) => {
      const { sessions: _, ...places } = input;
      const [ofPlaces, filter] = [parseFilter(places), parseFilter(input)];
      expect((await lists.sources(places)).items).toEqual(
        all.sources.filter(({ source }) => matches(ofPlaces, Event.fromPartial({ source }))),
      );
      expect((await lists.sessions(input)).items).toEqual(
        all.sessions.filter(({ source, session }) => matches(filter, Event.fromPartial({ source, session }))),
      );
    }),
    runs(ofSession, 30),
  );
});

it("a filter selects the operations with matching events, by their outcome", async () => {
  const all = (await lists.operations({})).items;
  const byId = new Map(seededEvents.map((event) => [event.id, event]));
  const outcomeOf = (name: string) =>
    Number(Object.entries(outcomeNames).find(([, known]) => known === name)?.[0]) as Event["outcome"];
  let found = 0;
  await fc.assert(
    fc.asyncProperty(anyFilter(ofOperations), async (input) => {
      const { kinds, ...rest } = input;
      const filter = parseFilter(rest);
      const expected = all.filter(({ id, kind, outcome }) => {
        const first = byId.get(id) ?? Event.fromPartial({});
        const isOfKind = kinds === undefined || kinds.includes(kind);
        return isOfKind && matches(filter, { ...first, outcome: outcome === "" ? 0 : outcomeOf(outcome) });
      });
      expect((await lists.operations(input)).items).toEqual(expected);
      found += expected.length;
    }),
    runs(ofOperations, 60),
  );
  expect(found).toBeGreaterThan(100);
});

function isOurs({ source }: Event): boolean {
  return source.startsWith("acme/");
}
