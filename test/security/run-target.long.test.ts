import { createServer as httpServer } from "node:http";
import { Server as GrpcServer, ServerCredentials } from "@grpc/grpc-js";
import { until } from "@tapedeck/shared/testing/until";
import { urlOf } from "tapedeck/testing/recorder";
import { describe } from "vitest";
import { Target } from "./run-target.ts";
import { testRefused, testUndecided, type Undecided, type Wrong } from "./run-target-tests.ts";

// Other answers of a team's gateway to the check of `tapedeck run` before a command.

const on = new Target();
const hour = 3_600_000;
const expired = new Date(Date.now() - 2 * 366 * 24 * hour);

const wrong: readonly Wrong[] = [
  [
    "a token that was revoked",
    async () => {
      const { text, revoke } = await on.token();
      await revoke();
      await until(() => on.isRefused(text), { message: "the gateway to know that the token is revoked" });
      return { TAPEDECK_TOKEN: text };
    },
    /reports: this token is unknown: it was revoked.*: provide a valid token/,
  ],
  [
    "a token that has expired",
    async () => ({ TAPEDECK_TOKEN: (await on.token(["recorder"], Date.now() - 2 * hour)).text }),
    /reports: the token has expired: provide a valid token/,
  ],
  [
    "a token without the role",
    async () => ({ TAPEDECK_TOKEN: (await on.token(["viewer"])).text }),
    /reports: this needs a token with the role recorder; this one has viewer: an admin creates one with `tapedeck token create/,
  ],
  [
    "a certificate that has expired",
    async () => {
      const { at, ca } = await on.proxied(["localhost"], expired);
      return { ...(await on.good()), TAPEDECK_URL: urlOf(at), TAPEDECK_CA: ca };
    },
    /the certificate at localhost:\d+ has expired: renew it on the server$/,
  ],
  [
    "a certificate for another name",
    async () => {
      const { at, ca } = await on.proxied(["elsewhere.example"]);
      return { ...(await on.good()), TAPEDECK_URL: urlOf(at), TAPEDECK_CA: ca };
    },
    /the certificate at localhost:\d+ is for another name \(DNS:elsewhere.example\): use a host name that the certificate is for/,
  ],
  [
    "a web server without TLS",
    async () => {
      const port = await on.listen(httpServer((_, response) => response.end("hello")));
      return { ...(await on.good()), TAPEDECK_GRPC_PORT: String(port) };
    },
    /the server at localhost:\d+ does not speak TLS: check the port$/,
  ],
  [
    "another gRPC server",
    async () => {
      const server = new GrpcServer();
      on.defer(() => server.forceShutdown());
      const port = await new Promise<number>((resolve, reject) =>
        server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
          error ? reject(error) : resolve(bound),
        ),
      );
      return { TAPEDECK_URL: urlOf(`127.0.0.1:${port}`) };
    },
    /is not the gRPC port of a Tapedeck server \(The server does not implement/,
  ],
  ["a time that is none", async () => ({ ...(await on.good()), TAPEDECK_ANSWER_WITHIN: "soon" }), /is not a duration/],
];

describe("a command whose recording would be refused runs unrecorded after one line that says why", () => {
  testRefused(on, wrong);
});

const undecided: readonly Undecided[] = [
  [
    "says nothing, where TLS should begin",
    async () => ({ TAPEDECK_URL: urlOf(`https://localhost:${await on.mute()}`) }),
  ],
  ["has a host that nobody knows", async () => ({ TAPEDECK_URL: "https://tapedeck.invalid" })],
  ["is away behind its proxy", async () => ({ TAPEDECK_URL: urlOf(`127.0.0.1:${await on.badGateway()}`) })],
];

describe("a command is recorded", () => {
  testUndecided(on, undecided);
});
