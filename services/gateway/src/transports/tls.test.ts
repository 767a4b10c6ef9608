import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { fromUnknown } from "@tapedeck/shared/errors/errors";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { createMetrics } from "@tapedeck/shared/service/metrics";
import { openCertificate } from "@tapedeck/shared/service/tls/certificate";
import { type TestCertificate, testCertificate } from "@tapedeck/shared/testing/certificates";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { everyone } from "../auth/authenticator.ts";
import { callerLimits } from "../limits/limits.ts";
import { defaultLimits } from "../limits/settings.ts";
import { gatewayMetrics } from "../metrics.ts";
import { grpcServer } from "./grpc/server.ts";
import { httpServer, listenHttp } from "./http/server.ts";

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());
let folder: string;
let ours: TestCertificate;
beforeAll(async () => {
  folder = await mkdtemp(join(inject("serversFolder"), "tls-"));
  ours = await testCertificate(folder);
});

describe("files that can't be used", () => {
  const open = (cert: string, key: string) => () => openCertificate({ cert, key, setting: "tls" }, { warn: () => {} });

  it("are reported by setting and path", async () => {
    const other = await testCertificate(folder, ["other"]);
    const empty = join(folder, "empty.pem");
    await writeFile(empty, "");
    const { certFile, keyFile } = ours;
    expect(open(join(folder, "none.pem"), keyFile)).toThrow(
      /^tls.cert: .*none.pem can't be read \(there is no such file\)$/,
    );
    expect(open(certFile, join(folder, "none.pem"))).toThrow(/^tls.key: .*none.pem can't be read/);
    expect(open(folder, keyFile)).toThrow(/^tls.cert: .* can't be read \(EISDIR/);
    expect(open(empty, keyFile)).toThrow(/^tls.cert: .*empty.pem is not a certificate in PEM$/);
    expect(open(certFile, certFile)).toThrow(/^tls.key: .* is not a private key without a passphrase in PEM$/);
    expect(open(certFile, other.keyFile)).toThrow(
      /^tls.key: .*other.key.pem is not the key of the certificate in .*localhost/,
    );
  });

  it.skipIf(process.getuid?.() === 0)("nor those that this user may not read", async () => {
    const { certFile, keyFile } = await testCertificate(folder, ["hidden"]);
    await chmod(keyFile, 0);
    expect(open(certFile, keyFile)).toThrow(/^tls.key: .*hidden.key.pem can't be read \(EACCES/);
  });
});

it("a renewed certificate is shown by every listener, without an end of what is under way; a broken one is not", async () => {
  const renewing = await testCertificate(folder, ["127.0.0.1"]);
  const said: string[] = [];
  const files = { cert: renewing.certFile, key: renewing.keyFile, setting: "tls" } as const;
  const certificate = stack.use(openCertificate(files, { warn: (message) => said.push(message), checkMs: 20 }));
  const limits = callerLimits(defaultLimits);
  const { watch } = gatewayMetrics(createMetrics("test"), silentLogger);
  const at = { host: "127.0.0.1", port: 0 };
  const authenticate = everyone("default");
  const app = await httpServer({ allowed: { hosts: [], origins: [] }, authenticate, certificate, watch, limits });
  stack.defer(() => app.close());
  const grpc = stack.use(
    await grpcServer(at, [], { authenticate, failed: fromUnknown, certificate, limits: limits.grpc }),
  );
  const addresses = [await listenHttp(app, at), grpc.address];
  const dial = async (address: string): Promise<TLSSocket> => {
    const socket = connect({
      port: Number(address.split(":")[1]),
      host: "127.0.0.1",
      rejectUnauthorized: false,
      ALPNProtocols: ["h2", "http/1.1"],
    });
    stack.defer(() => void socket.destroy());
    await once(socket, "secureConnect");
    return socket;
  };
  const shown = async () =>
    Promise.all(addresses.map(async (address) => (await dial(address)).getPeerX509Certificate()?.fingerprint256));
  const print = (pem: string) => new X509Certificate(pem).fingerprint256;
  expect(await shown()).toEqual([print(renewing.cert), print(renewing.cert)]);
  const before = await Promise.all(addresses.map(dial));

  await writeFile(files.cert, "half of it");
  await until(() => said.length > 0, { message: "a complaint" });
  expect(said).toEqual([expect.stringContaining("is not a certificate in PEM")]);
  expect(await shown()).toEqual([print(renewing.cert), print(renewing.cert)]);

  const renewed = await testCertificate(folder, ["127.0.0.1"]);
  await until(() => said.at(-1)?.includes("is new"), { message: "the renewal" });
  expect(await shown()).toEqual([print(renewed.cert), print(renewed.cert)]);
  expect(before.map(({ destroyed, readable }) => !destroyed && readable)).toEqual([true, true]);
});
