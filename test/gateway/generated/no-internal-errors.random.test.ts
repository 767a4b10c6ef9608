import { scenario } from "@tapedeck/query/testing/scenario";
import { registry } from "@tapedeck/shared/descriptors/registry";
import { searched } from "@tapedeck/shared/testing/searches";
import { seeded } from "@tapedeck/shared/testing/seeded";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type RawClient, rawClient, reasonOf } from "../../stack/raw-call.ts";
import { type SeededStack, startSeededStack } from "../../stack/seeded-stack.ts";
import { type HttpRequest, httpRequest, type Known } from "./http-requests.ts";
import { randomMessage } from "./messages.ts";
import { hostileTexts, oneOf, positionsIn } from "./values.ts";

// Whatever a client sends, the fault is not the server's: no request that is made of the API's own description, however
// hostile its values, is answered with an internal error.

const requests = searched({ short: 200, long: 5_000 });
const testMs = searched({ short: 120_000, long: 1_800_000 });
const together = 4;

const cleanup = new AsyncDisposableStack();
let on: SeededStack;
let client: RawClient;
let known: Known;
let positions: readonly string[];

beforeAll(async () => {
  on = cleanup.use(
    await startSeededStack({ TAPEDECK_LIMITS_REQUESTS_PER_SECOND: "100000", TAPEDECK_LIMITS_CONNECTIONS: "10000" }),
  );
  client = cleanup.use(rawClient(on.stack.grpc));
  const alice = scenario();
  const session = alice.session("01A1");
  session.started({ branch: "main", constructor: "x" });
  session.configured();
  session.loopStarted();
  session.build("web", "started");
  session.build("constructor", "started");
  session.build("web", "succeeded");
  session.text("Building [web]...\n");
  session.ended();
  const [first = 0] = await on.seed(alice.events);
  const source = ["alice/shop", "alice/shop/skaffold", "acme/alice/shop/skaffold"];
  known = {
    source,
    left: source,
    right: source,
    session: ["01A1"],
    artifact: ["web"],
    at: [on.at(first)],
    after: [on.at(first)],
  };
  positions = [...positionsIn(on.log.epoch), on.at(first), on.endAt(first + 3)];
});
afterAll(() => cleanup.disposeAsync());

it(
  "requests over HTTP are never answered with an internal error",
  async () => {
    const random = seeded("requests over HTTP");
    const hostile = hostileTexts(random, positions);
    const failed: string[] = [];
    await each(requests, async () => {
      const request = httpRequest(random, hostile, known);
      const error = await errorOf(request);
      if (error !== undefined) failed.push(`${request.method} ${request.path} ${JSON.stringify(request)}\n  ${error}`);
    });
    expect(failed).toEqual([]);
    expect((await on.stack.httpCall("GET", "/readyz")).status).toBe(200);
  },
  testMs,
);

/** Undefined: the answer is one, or says what is wrong with the request. */
async function errorOf({ method, path, headers, body }: HttpRequest): Promise<string | undefined> {
  const { status, body: answer } = await on.stack.httpCall(method, path, headers, body);
  if (status >= 500) return `${status} ${answer}`;
  return /"code":"internal"/.test(answer) ? answer.slice(-300) : undefined;
}

const services = [
  "tapedeck.v1.Tapedeck",
  "tapedeck.v1.Recorder",
  "proto.SkaffoldService",
  "proto.v2.SkaffoldV2Service",
  "v1alpha.PublicAPI",
  "hashicorp.vagrant.Vagrant",
  "grpc.health.v1.Health",
];
const methods = services.flatMap((name) => registry.getService(name)?.methods ?? []);

const metadataNames = ["tapedeck-source", "tapedeck-session", "tapedeck-at", "tapedeck-after", "tapedeck-min-position"];

it(
  "calls over gRPC are never answered with an internal error",
  async () => {
    expect(new Set(methods.map(({ parent }) => parent.typeName)).size).toBe(services.length);
    const random = seeded("calls over gRPC");
    const hostile = hostileTexts(random, positions);
    const failed: string[] = [];
    await each(requests, async () => {
      const method = oneOf(random, methods);
      const path = `/${method.parent.typeName}/${method.name}`;
      const message = randomMessage(random, method.input, hostile);
      const metadata = {
        "client-api-protocol": "1,1",
        ...(random.below(2) === 0 && { "tapedeck-source": "alice/shop" }),
        ...(random.below(4) === 0 && { [oneOf(random, metadataNames)]: hostile().replaceAll(/[^\x20-\x7e]/g, "?") }),
      };
      const error = await callError(path, metadata, message);
      if (error !== undefined) {
        failed.push(`${path} ${JSON.stringify(metadata)} ${Buffer.from(message).toString("base64")}\n  ${error}`);
      }
    });
    expect(failed).toEqual([]);
  },
  testMs,
);

/** What upstreams themselves answer with these codes, with their texts. */
const ofUpstreams =
  /^(unable to resolve UUID|ACI info not found|logging unsupported|grpc: error unmarshalling request)/;

async function callError(
  path: string,
  metadata: Readonly<Record<string, string>>,
  message: Uint8Array,
): Promise<string | undefined> {
  const call = client.open(path, metadata);
  call.write(message);
  call.end();
  // A stream that has begun and is silent has no fault yet.
  const silence = Promise.withResolvers<undefined>();
  void call.begun.then(() => setTimeout(() => silence.resolve(undefined), 50));
  const answer = await Promise.race([call.answer, silence.promise]);
  call.cancel();
  if (answer === undefined || Buffer.isBuffer(answer)) return undefined;
  const isOurs = path.startsWith("/tapedeck.") || !ofUpstreams.test(answer.details);
  const isFault = [2, 13, 15].includes(answer.code) && isOurs;
  return isFault ? `${answer.code} ${answer.details} ${reasonOf(answer) ?? ""}` : undefined;
}

async function each(count: number, run: () => Promise<void>): Promise<void> {
  let left = count;
  const work = async () => {
    while (left-- > 0) await run();
  };
  await Promise.all(Array.from({ length: together }, work));
}
