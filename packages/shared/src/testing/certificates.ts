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
  names: readonly string[] = ["localhost", "127.0.0.1"],
  from = new Date(),
): Promise<TestCertificate> {
  const altNames = names.map((name) =>
    isIP(name) === 0 ? ({ type: 2, value: name } as const) : ({ type: 7, ip: name } as const),
  );
  const made = await generate([{ name: "commonName", value: names[0] ?? "test" }], {
    keyType: "ec",
    notBeforeDate: from,
    extensions: [{ name: "subjectAltName", altNames }],
  });
  const file = join(folder, names[0] ?? "test");
  const [certFile, keyFile] = [`${file}.cert.pem`, `${file}.key.pem`];
  writeFileSync(certFile, made.cert);
  writeFileSync(keyFile, made.private, { mode: 0o600 });
  return { cert: made.cert, key: made.private, certFile, keyFile };
}
