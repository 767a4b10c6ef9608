import { mkdtempSync, rmSync } from "node:fs";
import { createServer as httpServer } from "node:http";
import { createServer as httpsServer } from "node:https";
import { type AddressInfo, createServer, type Server as NetServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Server, ServerCredentials, status } from "@grpc/grpc-js";
import type { PushRequest } from "@tapedeck/proto/tapedeck/v1/recorder";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { toGrpcStatus } from "@tapedeck/shared/errors/grpc";
import { type TestCertificate, testCertificate } from "@tapedeck/shared/testing/certificates";
import { gatewayLink } from "@tapedeck/tap/push/link";
import { afterAll, beforeAll, expect, it } from "vitest";
import { grpcEndpoint } from "../grpc-endpoint.ts";
import { type GrpcTarget, grpcTarget } from "../grpc-target.ts";
import { urlOf } from "../testing/recorder.ts";
import { type ConnectionFailure, failureOf } from "./connection-failure.ts";

const stack = new AsyncDisposableStack();
const folder = mkdtempSync(join(tmpdir(), "trouble-"));
let known: TestCertificate;
let foreign: TestCertificate;

beforeAll(async () => {
  known = await testCertificate(folder);
  foreign = await testCertificate(folder, ["elsewhere.example"]);
});
afterAll(async () => {
  await stack.disposeAsync();
  rmSync(folder, { recursive: true });
});

/** Some gRPC server that has nothing to do with us. */
async function grpc(certificate?: TestCertificate): Promise<number> {
  const server = new Server();
  stack.defer(() => server.forceShutdown());
  const credentials =
    certificate === undefined
      ? ServerCredentials.createInsecure()
      : ServerCredentials.createSsl(null, [
          { cert_chain: Buffer.from(certificate.cert), private_key: Buffer.from(certificate.key) },
        ]);
  return new Promise((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", credentials, (error, port) => (error ? reject(error) : resolve(port))),
  );
}

async function listen(server: NetServer): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stack.defer(() => void server.close());
  return (server.address() as AddressInfo).port;
}

async function failureWith(target: GrpcTarget): Promise<ConnectionFailure | undefined> {
  async function* nothing(): AsyncGenerator<PushRequest> {
    await new Promise(() => {});
  }
  try {
    for await (const _ of gatewayLink(grpcEndpoint(target))(nothing(), AbortSignal.timeout(20_000)));
  } catch (error) {
    return failureOf(error, target);
  }
  return undefined;
}

/** The target at a gRPC address, or at a name alone. */
const at = (text: string, ca?: TestCertificate) =>
  grpcTarget(/:\d+$/.test(text) ? urlOf(text) : text, {
    XDG_CONFIG_HOME: "/nonexistent",
    ...(ca !== undefined && { TAPEDECK_CA: ca.certFile }),
  });

it("nobody is there, or there is no such host", async () => {
  expect(await failureWith(at("127.0.0.1:9"))).toEqual({ why: "nothing listens at 127.0.0.1:9", mends: true });
  expect(await failureWith(at("https://tapedeck.invalid"))).toEqual({
    why: "the host tapedeck.invalid was not found",
    mends: true,
  });
});

it("a certificate that is not trusted, or for another name", async () => {
  const [port, otherPort] = [await grpc(known), await grpc(foreign)];
  const untrusted = await failureWith(at(`https://localhost:${port}`, foreign));
  expect(untrusted).toEqual({
    why: `the certificate at localhost:${port} is not trusted (self-signed certificate): set TAPEDECK_CA to the PEM file of its authority`,
    mends: false,
  });
  const other = await failureWith(at(`https://localhost:${otherPort}`, foreign));
  expect(other).toEqual({
    why: `the certificate at localhost:${otherPort} is for another name (DNS:elsewhere.example): use a host name that the certificate is for`,
    mends: false,
  });
});

it("TLS where there is none, and the reverse", async () => {
  const [plain, tls] = [await grpc(), await grpc(known)];
  expect(await failureWith(at(`https://localhost:${plain}`, known))).toEqual({
    why: `the server at localhost:${plain} does not speak TLS: check the port`,
    mends: false,
  });
  expect(await failureWith(at(`127.0.0.1:${tls}`))).toEqual({
    why: `127.0.0.1:${tls} closes the connection: if it speaks TLS, use https://127.0.0.1:${tls + 1}`,
    mends: true,
  });
});

it("another port than the one of gRPC", async () => {
  const http = await listen(httpServer((_, response) => response.end("hello")));
  const https = await listen(httpsServer({ cert: known.cert, key: known.key }, (_, response) => response.end("hello")));
  const wrong = (name: string, url: string, port: number) => ({
    why: `${name} is not the gRPC port of a Tapedeck server: check the address ${url}:${port + 1} and, if its gRPC is not on the port below, TAPEDECK_GRPC_PORT`,
    mends: false,
  });
  expect(await failureWith(at(`127.0.0.1:${http}`))).toEqual(wrong(`127.0.0.1:${http}`, "http://127.0.0.1", http));
  expect(await failureWith(at(`https://localhost:${https}`, known))).toEqual(
    wrong(`https://localhost:${https}`, "https://localhost", https),
  );
  const other = await failureWith(at(`https://localhost:${await grpc(known)}`, known));
  expect(other).toMatchObject({
    why: expect.stringContaining("is not the gRPC port of a Tapedeck server (The server does not implement"),
    mends: false,
  });
});

it("somebody who hangs up in the middle", async () => {
  const port = await listen(createServer((socket) => socket.once("data", () => socket.destroy())));
  expect(await failureWith(at(`https://localhost:${port}`, known))).toEqual({
    why: `the connection to localhost:${port} is lost`,
    mends: true,
  });
});

it("a message of Tapedeck itself is printed as it is", () => {
  const target = { address: "127.0.0.1:7051", name: "127.0.0.1:7051" };
  const reported = (error: TapedeckError) => failureOf(Object.assign(new Error("x"), toGrpcStatus(error)), target);
  expect(reported(new TapedeckError("forbidden", "not you"))).toEqual({ why: "not you", mends: false });
  expect(reported(new TapedeckError("not_ready", "the log is unavailable"))).toEqual({
    why: "the log is unavailable",
    mends: true,
  });
  const cancelled = Object.assign(new Error("x"), { code: status.CANCELLED, details: "Call cancelled" });
  expect(failureOf(cancelled, target)).toBeUndefined();
});
