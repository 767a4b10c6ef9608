import { gunzipSync, gzipSync } from "node:zlib";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { sequenceOf } from "@tapedeck/shared/log/offset";
import { expect, it } from "vitest";
import type { Format, FormatPass } from "../format/format.ts";
import { formats } from "../format/formats.ts";
import type { TargetAnswer } from "../target/http-target.ts";
import { heldEvents } from "../testing/held-events.ts";
import { firstOpening, noReader } from "../testing/no-reader.ts";
import { Delivery } from "./delivery.ts";

const ok: TargetAnswer = {
  type: "answer",
  status: 200,
  retryAfter: undefined,
  contentType: undefined,
  body: Buffer.alloc(0),
};
const answered = (status: number): TargetAnswer => ({ ...ok, status });
const hung: TargetAnswer = { type: "failure", error: "no answer", reached: true };
const away: TargetAnswer = { type: "failure", error: "refused", reached: false };

const gzipStart = 0x1f;

type Sent = { readonly ordinals: readonly number[]; readonly isTest: boolean };

/** Delivers to a target that answers so. */
function harness(
  answer: (sent: Sent) => TargetAnswer,
  mode: "batched" | "structured" = "batched",
  format: Format = formats.webhook,
  posted: (body: Uint8Array) => void = () => {},
) {
  const sent: Sent[] = [];
  const parked: number[] = [];
  const delivered: number[] = [];
  const failing: boolean[] = [];
  const over = new AbortController();
  const target = {
    async post({ body }: { readonly body: Uint8Array }) {
      posted(body);
      const text = body[0] === gzipStart ? gunzipSync(body) : body;
      const events = [JSON.parse(Buffer.from(text).toString())].flat() as { data: { ordinal?: number } }[];
      const ordinals = events.flatMap(({ data }) => data.ordinal ?? []);
      const one = { ordinals, isTest: ordinals.length === 0 };
      sent.push(one);
      if (sent.length > 500) over.abort();
      return answer(one);
    },
  };
  const delivery = new Delivery({
    format,
    reader: noReader,
    opening: firstOpening,
    sink: {
      workspace: "default",
      name: "hook",
      mode,
      filter: {},
      live: false,
      secret: undefined,
      epoch: "gcj869",
      page: "",
    },
    headers: {},
    target,
    times: { retryMs: 0, maxRetryMs: 0 },
    listener: {
      delivered: (offset) => delivered.push(sequenceOf(offset)),
      attempted: () => {},
      failing: (refused) => void failing.push(refused !== undefined),
      park: async ({ recorded }) => void parked.push(sequenceOf(recorded.offset)),
    },
  });
  const run = (count: number) => delivery.deliver(heldEvents(1, count), over.signal);
  return { sent, parked, delivered, failing, over, run, events: () => sent.filter(({ isTest }) => !isTest) };
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

/** A format that makes its requests so. */
const reading = (requests: FormatPass["requests"]): Format => ({ ...formats.webhook, open: () => ({ requests }) });

it("splits a batch until it knows which events its target refuses, and sends no event before an earlier one", async () => {
  const bad = [1, 40, 41, 77, 100];
  const accepted: number[] = [];
  const on = harness(({ ordinals }) => {
    if (ordinals.some((one) => bad.includes(one))) return answered(422);
    accepted.push(...ordinals);
    return ok;
  });
  await on.run(100);
  expect(on.parked).toEqual(bad);
  expect(accepted).toEqual(upTo(100).filter((one) => !bad.includes(one)));
  expect(on.delivered.toSorted((a, b) => a - b)).toEqual(on.delivered);
  expect(on.events().length).toBeLessThan(80);
});

it("continues after the events that were accepted when a later request fails", async () => {
  let failures = 0;
  const on = harness(({ ordinals }) => (ordinals[0] === 7 && failures++ < 3 ? hung : ok), "structured");
  await on.run(10);
  expect(on.events().map(({ ordinals }) => ordinals[0])).toEqual([...upTo(6), 7, 7, 7, 7, 8, 9, 10]);
});

it("parks an event that makes its target hang, once it hangs between two good tests", async () => {
  const on = harness(({ ordinals }) => (ordinals.includes(3) ? hung : ok));
  await on.run(5);
  expect(on.parked).toEqual([3]);
  const last = on.sent.findLastIndex(({ ordinals }) => ordinals.includes(3));
  expect(on.sent.slice(last - 1, last + 2).map(({ isTest }) => isTest)).toEqual([true, false, true]);
});

it("delivers an event that is accepted at another attempt, and parks nothing", async () => {
  let tries = 0;
  const on = harness(({ isTest }) => (isTest || ++tries > 10 ? ok : hung), "structured");
  await on.run(1);
  expect(on.parked).toEqual([]);
  expect(on.delivered).toEqual([1]);
});

it("parks nothing while nobody answers, or while its target refuses everything", async () => {
  for (const answer of [away, answered(503), answered(500), answered(401), answered(404)]) {
    const on = harness(() => answer);
    await on.run(3);
    expect(on.over.signal.aborted).toBe(true);
    expect(on.parked).toEqual([]);
    expect(on.delivered).toEqual([]);
  }
});

it("parks nothing when its target fails for long, and then refuses everything, for whatever reason", async () => {
  for (const last of [400, 401, 404, 422]) {
    let tries = 0;
    const on = harness(() => answered(++tries > 10 ? last : 500), "structured");
    await on.run(3);
    expect([on.parked, on.delivered]).toEqual([[], []]);
  }
});

it("parks an event whose error is not final only after ten such failures, whatever came before", async () => {
  const before = [away, answered(503), answered(401)];
  for (const first of before) {
    let requests = 0;
    let failures = 0;
    const on = harness(({ isTest }) => {
      if (++requests <= 40) return first;
      if (!isTest) failures++;
      return isTest ? ok : answered(500);
    }, "structured");
    await on.run(1);
    expect([on.parked, failures]).toEqual([[1], 11]);
  }
});

it("waits with an event that is refused in another way between two good tests", async () => {
  let failures = 0;
  const on = harness(({ isTest }) => {
    if (isTest) return ok;
    failures++;
    return failures === 1 ? answered(400) : failures < 5 ? hung : ok;
  }, "structured");
  await on.run(1);
  expect([on.parked, on.delivered]).toEqual([[], [1]]);
});

it.each<[string, Partial<Format>]>([
  ["", {}],
  [" to a chat", { isTestSeen: true }],
])("parks an event that can't be written%s", async (_, more) => {
  const odd: Format = {
    ...formats.webhook,
    ...more,
    open(...opened) {
      const webhook = formats.webhook.open(...opened);
      return {
        async requests(events, signal) {
          if (events.some(({ recorded }) => sequenceOf(recorded.offset) === 3)) throw new RangeError("no such time");
          return webhook.requests(events, signal);
        },
      };
    },
  };
  const on = harness(() => ok, "batched", odd);
  await on.run(10);
  expect(on.parked).toEqual([3]);
  expect(on.events().flatMap(({ ordinals }) => ordinals)).toEqual(upTo(10).filter((one) => one !== 3));
});

it("leaves the rest undelivered when it is stopped", async () => {
  const on = harness(({ ordinals }) => {
    if (ordinals[0] === 4) on.over.abort();
    return ordinals[0] === 4 ? hung : ok;
  }, "structured");
  await on.run(9);
  expect(on.delivered).toEqual([3]);
});

it("passes events that its format has no request for", async () => {
  const odd: Format = {
    ...formats.webhook,
    open(...opened) {
      const webhook = formats.webhook.open(...opened);
      return {
        async requests([first, second], signal) {
          if (first === undefined) return [];
          const made = await webhook.requests(second === undefined ? [first] : [first, second], signal);
          return made.slice(1);
        },
      };
    },
  };
  const on = harness(() => ok, "structured", odd);
  await on.run(4);
  expect(on.delivered.at(-1)).toBe(4);
});

it("says that its target accepts again only when that has accepted something", async () => {
  let posts = 0;
  // The first half needs no request.
  const requests: FormatPass["requests"] = (events) =>
    events.flatMap(({ recorded }, index) =>
      sequenceOf(recorded.offset) <= 50
        ? []
        : [{ id: "1", body: JSON.stringify([{ data: { ordinal: 51 } }]), headers: {}, covers: index + 1 }],
    );
  const on = harness(() => (++posts <= 3 ? answered(503) : ok), "batched", reading(requests));
  await on.run(40);
  expect(on.failing).toEqual([]);
  await on.run(51);
  expect(on.failing).toEqual([true, true, true, false]);
});

it("parks no event when its target becomes well after a final refusal, before the test", async () => {
  let isWell = false;
  const on = harness(({ isTest }) => {
    if (isTest) isWell = true;
    return isWell ? ok : answered(401);
  });
  await on.run(1);
  expect([on.parked, on.delivered, on.sent.length]).toEqual([[], [1], 3]);
});

it("parks nothing when its format can't read the log, and leaves that to the pass", async () => {
  const away = new TapedeckError("not_ready", "the log is away");
  const on = harness(
    () => ok,
    "batched",
    reading(async () => Promise.reject(away)),
  );
  await expect(on.run(3)).rejects.toBe(away);
  expect([on.parked, on.delivered, on.sent]).toEqual([[], [], []]);
});

it("delivers nothing when it is stopped while its format reads", async () => {
  const on = harness(
    () => ok,
    "batched",
    reading(async () => {
      on.over.abort();
      return [];
    }),
  );
  await on.run(3);
  expect([on.parked, on.delivered, on.sent]).toEqual([[], [], []]);
});

it("sends bytes as they are", async () => {
  const body = gzipSync(JSON.stringify([{ data: { ordinal: 1 } }]));
  const posted: Uint8Array[] = [];
  const on = harness(
    () => ok,
    "batched",
    reading(() => [{ id: "1", body, headers: {}, covers: 1 }]),
    (sent) => posted.push(sent),
  );
  await on.run(1);
  expect(posted).toEqual([body]);
});
