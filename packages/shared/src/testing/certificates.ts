import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import { generate } from "selfsigned";

/** PEM texts, and the files that hold them: settings name files. The certificate is its own authority. */
export type TestCertificate = {
  readonly cert: string;
  readonly key: string;
  readonly certFile: string;
  readonly keyFile: string;
};

/** A certificate for these names and addresses, good from now on (or the time given) for a year, in that folder. */
export async function testCertificate(
  folder: string,
  names: readonly string[] = localNames,
  from = new Date(),
): Promise<TestCertificate> {
  return write(join(folder, names[0] ?? "test"), await makeCertificate(names, { notBeforeDate: from }));
}

/** An authority of a test's own. */
export type TestAuthority = {
  /** PEM file of its certificate, for those who trust it. */
  readonly certFile: string;
  /** A certificate for this machine in that folder, signed by the authority; over one of the same name. */
  readonly issue: (folder: string, name: string) => Promise<TestCertificate>;
};

/** The name is a file's. The subject is no other authority's: of two with the same one, OpenSSL tries only the first that it trusts. */
export async function testAuthority(folder: string, name: string): Promise<TestAuthority> {
  const made = await generate([{ name: "commonName", value: `${name} ${randomUUID()}` }], {
    keyType: "ec",
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  const { certFile } = write(join(folder, name), made);
  const ca = { cert: made.cert, key: made.private };
  return {
    certFile,
    issue: async (within, title) => write(join(within, title), await makeCertificate(localNames, { ca })),
  };
}

const localNames = ["localhost", "127.0.0.1"];

type Made = { readonly cert: string; readonly private: string };

function makeCertificate(names: readonly string[], more: Parameters<typeof generate>[1]): Promise<Made> {
  const altNames = names.map((name) =>
    isIP(name) === 0 ? ({ type: 2, value: name } as const) : ({ type: 7, ip: name } as const),
  );
  return generate([{ name: "commonName", value: names[0] ?? "test" }], {
    keyType: "ec",
    algorithm: "sha256",
    extensions: [{ name: "subjectAltName", altNames }],
    ...more,
  });
}

function write(file: string, made: Made): TestCertificate {
  const [certFile, keyFile] = [`${file}.cert.pem`, `${file}.key.pem`];
  writeFileSync(certFile, made.cert);
  writeFileSync(keyFile, made.private, { mode: 0o600 });
  return { cert: made.cert, key: made.private, certFile, keyFile };
}
